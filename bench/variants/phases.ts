import type { InvoiceInput } from "../invoice.ts";
import { createdInvoice, instance, served } from "./oncekey.ts";
import type { Variant } from "./variant.ts";

const HOUR = 3_600_000;

/** Oncekey's `phases` kind: two outside calls, answered at once and deduped by the other side, then the insert. */
export const phases: Variant = {
  name: "phases",
  title: "Oncekey, `phases` with two outside calls",
  async open(world) {
    const once = instance(world);
    const call = (request: string) => ({
      timeoutMs: 10_000,
      request,
      run: async ({ key }: { readonly key: string }) => ({ key }),
      recover: { dedupes: { forMs: 24 * HOUR } },
    });
    const operation = once.phases({
      name: "invoices.create",
      version: 1,
      async run(op) {
        await op.call("authorize", call("authorize"));
        await op.call("capture", call("capture"));
        return op.complete(async ({ tx }) =>
          createdInvoice(await world.handler.insert(tx, op.input.body as InvoiceInput)),
        );
      },
    });
    return served(once, operation);
  },
};
