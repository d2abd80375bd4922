import type { IncomingMessage } from "node:http";
import { idempotent } from "oncekey/node";
import { readBody, sendJson } from "../host.ts";
import type { InvoiceInput } from "../invoice.ts";
import { instance, type OncekeyChoices, scope } from "./oncekey.ts";
import type { Variant } from "./variant.ts";

const FORMS = ["single", "grouped"];

/** Oncekey's `capture` kind around an existing listener that inserts in a commit of its own. */
export function capture(choices: Pick<OncekeyChoices, "groups"> = {}): Variant {
  const form = choices.groups === undefined ? "default" : FORMS[Number(choices.groups)];
  return {
    name: form === "default" ? "capture" : `capture-${form}`,
    title: `Oncekey, \`capture\`${form === "default" ? "" : `, ${form} statements`}`,
    async open(world) {
      const once = instance(world, choices);
      const reconcile = async () => ({ kind: "unknown", why: "the bench keeps no trace" }) as const;
      const operation = once.capture({ name: "invoices.create", version: 1, reconcile });
      const listener = idempotent(operation, { scope }, async (request: IncomingMessage, response) => {
        const input = JSON.parse(String(await readBody(request))) as InvoiceInput;
        sendJson(response, 201, JSON.stringify(await world.handler.insert(world.pool, input)));
      });
      await once.start();
      return { listener, close: () => once.close({ graceMs: 5_000 }) };
    },
  };
}
