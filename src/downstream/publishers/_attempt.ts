import { type OutboxMessage, type Published, retry } from "../publisher.ts";

/** A name at the broker, the same for all messages or made from each. */
export type Destined = string | ((message: OutboxMessage) => string);

/** The name for one message. */
export function destined(name: Destined, message: OutboxMessage): string {
  return typeof name === "string" ? name : name(message);
}

/** What a system's own errors mean; `null`: nothing special, it is tried again. */
type Judge = (error: unknown) => Published | null;

/**
 * One attempt to deliver: a throw, and an abort of the signal, are a `retry`. What was begun before the abort may still
 * arrive; its late failure must not become an unhandled rejection.
 */
export async function attempt(
  system: string,
  signal: AbortSignal,
  run: () => Promise<Published>,
  judge: Judge = () => null,
): Promise<Published> {
  if (signal.aborted) return retry(`${system} was not asked: no time was left.`);
  let giveUp = () => {};
  const aborted = new Promise<Published>((resolve) => {
    giveUp = () => resolve(retry(`${system} did not answer in time.`));
  });
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    const running = run().catch(
      (error: unknown) => judge(error) ?? retry(`${system} did not take it over: ${codeOf(error)}.`),
    );
    return await Promise.race([running, aborted]);
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}

/**
 * What an error is called: its code or name, never its message, which may quote a URL with a password or the payload.
 */
function codeOf(error: unknown): string {
  for (const one of causes(error)) {
    const { code, type, name } = one as { code?: unknown; type?: unknown; name?: unknown };
    const found = [code, type, name].find((value) => isCode(value) && value !== "Error");
    if (found !== undefined) return String(found);
  }
  return "unknown failure";
}

/** An error, what it was caused by, and so on. Deepest last; an `AggregateError` is followed into its first. */
export function causes(error: unknown): object[] {
  const found: object[] = [];
  for (let next = error; typeof next === "object" && next !== null && found.length < 8; ) {
    found.push(next);
    const { cause, errors } = next as { cause?: unknown; errors?: unknown };
    next = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
  }
  return found;
}

function isCode(value: unknown): boolean {
  if (typeof value === "number") return Number.isInteger(value);
  return typeof value === "string" && /^[A-Za-z][\w.]{1,63}$/.test(value);
}
