import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

/** What every place to type into has. `hint` says what belongs there. */
interface Typed {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly required?: boolean;
  readonly maxLength?: number;
  readonly spellcheck?: boolean;
}

/** One line, with its label. */
export function Field({
  label,
  hint,
  onValue,
  type = "text",
  ...rest
}: Typed & {
  readonly type?: "text" | "password" | "datetime-local";
  readonly name?: string;
  readonly autoComplete?: "off" | "username" | "current-password";
  readonly inputMode?: "numeric";
}) {
  const id = useId();
  // Preact's types tell inputs apart by this; what is used of them here is the same for all.
  const given = { ...rest, ...described(id, hint), type: type as "text" };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input {...given} id={id} onInput={(event) => onValue(event.currentTarget.value)} />
      <Hint id={id}>{hint}</Hint>
    </div>
  );
}

/** Several lines, with their label. `mono`: code. */
export function Lines({
  label,
  hint,
  onValue,
  rows = 3,
  mono = false,
  ...rest
}: Typed & { readonly rows?: number; readonly mono?: boolean }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        {...rest}
        id={id}
        rows={rows}
        class={mono ? "mono" : ""}
        onInput={(event) => onValue(event.currentTarget.value)}
        {...described(id, hint)}
      />
      <Hint id={id}>{hint}</Hint>
    </div>
  );
}

const described = (id: string, hint: ComponentChildren) =>
  hint === undefined ? {} : { "aria-describedby": `${id}-hint` };

function Hint({ id, children }: { readonly id: string; readonly children: ComponentChildren }) {
  if (children === undefined) return null;
  return (
    <p class="hint" id={`${id}-hint`}>
      {children}
    </p>
  );
}

/** One of several words. */
export function Choice({
  label,
  value,
  choices,
  onValue,
}: {
  readonly label: string;
  readonly value: string;
  readonly choices: readonly (readonly [value: string, words: string])[];
  readonly onValue: (value: string) => void;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onValue(event.currentTarget.value)}>
        {choices.map(([choice, words]) => (
          <option key={choice} value={choice}>
            {words}
          </option>
        ))}
      </select>
    </div>
  );
}
