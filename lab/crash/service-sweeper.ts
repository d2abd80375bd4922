/** A worker that sweeps and does nothing else, for `oncekey worker`: the example's own operations, looked at more often. */
import { createSweeper } from "oncekey/sweeper";
import { openLab } from "../../examples/payments/lab.ts";
import { openPayments } from "../../examples/payments/payments.ts";
import { readSettings } from "../../examples/payments/settings.ts";
import { findStack } from "../../examples/payments/stack.ts";

/** The sweeper over the example's operations. */
export async function worker() {
  const settings = readSettings(process.env);
  const stack = await findStack(settings, console.error);
  const { once, end } = await openPayments({ settings, ...stack, ...openLab({ ...settings, lab: false }) });
  return { once, sweeper: createSweeper(once, { intervalMs: 200 }), close: end };
}
