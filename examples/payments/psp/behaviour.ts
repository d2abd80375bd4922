/** How the provider misbehaves. All times in milliseconds. Set by `POST /behaviour`, any subset at a time. */
export interface Behaviour {
  /** How long a payment or a cancellation takes before anything happens. */
  readonly latency_ms: number;
  /** The next n payments answer 500 without being made. */
  readonly fail_next: number;
  /** The next n payments are made, then the connection is cut without an answer. */
  readonly drop_next: number;
  /** Payments are accepted, the connection is cut at once, and they are made so much later. 0: at once. */
  readonly land_after_ms: number;
  /** One effect per key. Off: every call is a payment of its own. */
  readonly dedupe: boolean;
  /** How long a key is remembered for `dedupe`, from its payment on. */
  readonly dedupe_window_ms: number;
  /** How long a new payment is missing from the look-ups. */
  readonly find_lag_ms: number;
  /** Everything but `/behaviour` is refused. */
  readonly down: boolean;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** A provider on a good day. */
export const GOOD_DAY: Behaviour = {
  latency_ms: 0,
  fail_next: 0,
  drop_next: 0,
  land_after_ms: 0,
  dedupe: true,
  dedupe_window_ms: DAY_MS,
  find_lag_ms: 0,
  down: false,
};

/** Checks a change of behaviour. Gives the change, or the complaint to answer. */
export function behaviourChange(
  body: unknown,
): { readonly change: Partial<Behaviour> } | { readonly complaint: string } {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return { complaint: "expected a JSON object" };
  for (const [name, value] of Object.entries(body)) {
    if (!Object.hasOwn(GOOD_DAY, name)) {
      return { complaint: `unknown knob ${name}; known: ${Object.keys(GOOD_DAY).join(", ")}` };
    }
    const expected = typeof GOOD_DAY[name as keyof Behaviour];
    if (typeof value !== expected) return { complaint: `${name} must be a ${expected}` };
    if (typeof value === "number" && !(Number.isSafeInteger(value) && value >= 0)) {
      return { complaint: `${name} must be a whole number, 0 or more` };
    }
  }
  return { change: body as Partial<Behaviour> };
}
