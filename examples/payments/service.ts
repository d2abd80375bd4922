import { openLab } from "./lab.ts";
import { openPayments } from "./payments.ts";
import { readSettings } from "./settings.ts";
import { findStack } from "./stack.ts";
import { loopsOf } from "./work.ts";

/**
 * The background work of the example, for `oncekey worker examples/payments/service.ts` and for `npm run worker`. It needs
 * the database and the provider of an API on the same data directory, or DATABASE_URL and PSP_URL.
 */
export async function worker() {
  const settings = readSettings(process.env);
  const stack = await findStack(settings, (line) => console.error(line));
  const payments = await openPayments({ settings, ...stack, ...openLab({ ...settings, lab: false }) });
  return { once: payments.once, ...loopsOf(payments, settings), database: stack.databaseUrl, close: payments.end };
}
