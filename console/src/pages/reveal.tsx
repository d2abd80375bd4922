import { useState } from "preact/hooks";
import { type Revealable, reveal } from "../data/entries.ts";
import { Confirm } from "../parts/confirm.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { useOperator } from "../session.ts";

const NAMES: Readonly<Record<Revealable, string>> = {
  key: "the key",
  derived_keys: "the keys of outside calls",
  outcome: "the stored outcome",
};

type Step =
  | { readonly kind: "closed" }
  | { readonly kind: "asking"; readonly what: Revealable }
  | { readonly kind: "shown"; readonly what: Revealable; readonly value: unknown };

const CLOSED: Step = { kind: "closed" };

/** Shows what is masked, once, to those who may: that they looked is audited first. What was shown goes with its dialog. */
export function RevealButtons({ id, onRevealed }: { readonly id: string; readonly onRevealed: () => void }) {
  const [step, setStep] = useState<Step>(CLOSED);
  const { mayReveal } = useOperator();
  if (!mayReveal) return <p class="quiet">Keys and content are masked here, and you may not look at them.</p>;
  return (
    <div class="actions">
      {(Object.keys(NAMES) as Revealable[]).map((what) => (
        <button key={what} type="button" onClick={() => setStep({ kind: "asking", what })}>
          Show {NAMES[what]} …
        </button>
      ))}
      {step.kind === "asking" ? (
        <Confirm
          title={`Show ${NAMES[step.what]}`}
          act="Show it"
          consequence={
            <p>
              That you looked at {NAMES[step.what]}, and why, is kept in the audit before it is shown. It is shown once,
              on this screen; nothing else changes.
            </p>
          }
          onAct={async (reason) => {
            const { value } = await reveal(id, step.what, reason);
            setStep({ kind: "shown", what: step.what, value });
          }}
          onClose={() => setStep((now) => (now.kind === "asking" ? CLOSED : now))}
        />
      ) : null}
      {step.kind === "shown" ? (
        <Revealed
          what={step.what}
          value={step.value}
          onClose={() => {
            setStep(CLOSED);
            onRevealed();
          }}
        />
      ) : null}
    </div>
  );
}

function Revealed({
  what,
  value,
  onClose,
}: {
  readonly what: Revealable;
  readonly value: unknown;
  readonly onClose: () => void;
}) {
  return (
    <Dialog title={`Shown: ${NAMES[what]}`} onClose={onClose}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by the keyboard. */}
      <pre class="revealed" tabIndex={0} data-revealed>
        {typeof value === "string" ? value : JSON.stringify(value, null, 2)}
      </pre>
      <div class="actions">
        <button type="button" class="primary" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
