/** Something that must hold does not, for the input at hand: what a fuzzed target raises, and nothing else does. */
export class Finding extends Error {
  override readonly name = "Finding";
}

/** Raises a {@link Finding} where `holds` is false. `what` says what was expected. */
export function must(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Finding(what);
}

/**
 * Stands in seeds and words for what a client sends. No refusal may repeat it: messages are logged, and shown to others
 * than the sender.
 */
export const MARKER = "@zq9secret@";
const MARKED = /zq9s/i;
/** Messages may say where it is, by names that look like those of an API's fields. */
const PLAIN_PATH = /\$(?:\.[A-Za-z_][A-Za-z0-9_]{0,39}|\[\d+\]|\[\?\])+/g;

/** What running the code under test gave: a value, or one of the refusals that it declares. */
export type Outcome<T> =
  | { readonly kind: "value"; readonly value: T }
  | { readonly kind: "refused"; readonly code: string; readonly message: string };

/**
 * Runs the code under test. Raises a {@link Finding} for an error without one of the `declared` codes, and for a message
 * that repeats the input.
 */
export function outcomeOf<T>(declared: readonly string[], run: () => T): Outcome<T> {
  try {
    return { kind: "value", value: run() };
  } catch (error) {
    return refusal(declared, error);
  }
}

/** The same of what ends later. */
export async function laterOutcomeOf<T>(declared: readonly string[], run: () => Promise<T>): Promise<Outcome<T>> {
  try {
    return { kind: "value", value: await run() };
  } catch (error) {
    return refusal(declared, error);
  }
}

function refusal(declared: readonly string[], error: unknown): Outcome<never> {
  const { code, name, message } = error as { code?: unknown; name?: unknown; message?: unknown };
  const known = [code, name].find((one) => typeof one === "string" && declared.includes(one));
  if (typeof known !== "string") throw new Finding(`crashed: ${String(error).slice(0, 160)}`);
  must(!MARKED.test(String(message).replace(PLAIN_PATH, "")), "a refusal repeats what was sent");
  return { kind: "refused", code: known, message: String(message) };
}

/** Raises a {@link Finding} where two texts or bytes differ. */
export function mustEqual(found: string | Uint8Array, expected: string | Uint8Array, what: string): void {
  const same =
    typeof found === "string" || typeof expected === "string"
      ? found === expected
      : Buffer.compare(found, expected) === 0;
  if (!same) throw new Finding(`${what}: ${shown(found)} in place of ${shown(expected)}`);
}

const shown = (one: string | Uint8Array): string =>
  JSON.stringify(typeof one === "string" ? one : Buffer.from(one).toString("latin1")).slice(0, 200);
