import { listenerOf, readBody, sendJson } from "../host.ts";
import type { InvoiceInput } from "../invoice.ts";
import { inTransaction } from "./in-transaction.ts";
import type { Variant } from "./variant.ts";

/** The same handler as a plain transaction, without any key. */
export const plain: Variant = {
  name: "plain",
  title: "the handler as a plain transaction, without a key",
  async open({ pool, handler }) {
    const create = (input: InvoiceInput) => inTransaction(pool, (client) => handler.insert(client, input));
    return {
      listener: listenerOf(async (request, response) => {
        const input = JSON.parse(String(await readBody(request))) as InvoiceInput;
        sendJson(response, 201, JSON.stringify(await create(input)));
      }),
    };
  },
};
