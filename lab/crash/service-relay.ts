/** A worker that delivers and does nothing else, for `oncekey worker`: with times that fit a campaign of minutes. */
import { createRelay } from "oncekey/outbox";
import { destinationOf } from "../../examples/payments/deliveries.ts";
import { openLab } from "../../examples/payments/lab.ts";
import { openPayments } from "../../examples/payments/payments.ts";
import { readSettings } from "../../examples/payments/settings.ts";
import { findStack } from "../../examples/payments/stack.ts";
import { TIMES } from "./terms.ts";

const RELAY_TIMES = { leaseMs: TIMES.leaseMs, timeoutMs: 5_000, intervalMs: 100, longestPauseMs: 1_000 };

/** The relay over the example's outbox. */
export async function worker() {
  const settings = readSettings(process.env);
  const stack = await findStack(settings, console.error);
  const { once, end } = await openPayments({ settings, ...stack, ...openLab({ ...settings, lab: false }) });
  const destination = destinationOf(settings);
  const topics = { "invoice.*": destination, "charge.*": destination };
  return { once, relay: createRelay(once, { topics, ...RELAY_TIMES }), close: end };
}
