import { deliveryInvalid } from "../core/delivery.ts";
import type { TransactionLimits } from "../core/store.ts";
import type { ConsumeOptions } from "./arrival.ts";
import { type EngineContext, limitsOf } from "./context.ts";
import { DEFAULT_MAX_DURATION_MS } from "./settings.ts";

/** How deliveries are consumed, every default filled in. Durations in milliseconds. */
export interface ConsumeRules extends Required<ConsumeOptions> {
  readonly limits: TransactionLimits;
}

const REMEMBER_MS = 7 * 24 * 3_600_000;
const LONGEST_REMEMBER_MS = 10 * 365 * 24 * 3_600_000;
const LONGEST_MS = 2 ** 31 - 1;
const ON_DUPLICATE = ["acknowledge", "replay", "reject"];

/** Options and defaults together, checked. Raises `oncekey_delivery_invalid`. */
export function consumeRules(context: EngineContext, options: ConsumeOptions): ConsumeRules {
  const {
    onDuplicate = "acknowledge",
    rememberMs = REMEMBER_MS,
    maxDurationMs = DEFAULT_MAX_DURATION_MS,
    waitMs = context.settings.waitMs,
  } = options;
  if (!ON_DUPLICATE.includes(onDuplicate)) throw deliveryInvalid(`onDuplicate is one of ${ON_DUPLICATE.join(", ")}`);
  requireWhole("maxDurationMs", maxDurationMs, 1, LONGEST_MS);
  requireWhole("waitMs", waitMs, 0, LONGEST_MS);
  // What is forgotten while its handler may still run could be taken in a second time beside it.
  requireWhole("rememberMs", rememberMs, maxDurationMs + 1, LONGEST_REMEMBER_MS);
  return { onDuplicate, rememberMs, maxDurationMs, waitMs, limits: limitsOf(context, maxDurationMs) };
}

function requireWhole(name: string, ms: number, least: number, most: number): void {
  if (Number.isInteger(ms) && ms >= least && ms <= most) return;
  const bound = name === "rememberMs" ? `more than maxDurationMs (${least - 1})` : `at least ${least}`;
  throw deliveryInvalid(`${name} is a whole number of milliseconds, ${bound} and at most ${most}`);
}
