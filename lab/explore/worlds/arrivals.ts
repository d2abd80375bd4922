import type { ConsumeOptions, ConsumeResult } from "../../../src/engine/arrival.ts";
import { EFFECTS } from "../invariants.ts";
import type { Answer, Deploy } from "../world.ts";
import { type Ask, type InstanceTerms, instance } from "./cast.ts";

/** A consumer of deliveries, whose handler writes one row and sends one message. */
export interface ConsumerCode {
  readonly onDuplicate: NonNullable<ConsumeOptions["onDuplicate"]>;
  readonly once?: InstanceTerms;
}

/** Deploys the consumer. A client is a queue there: it delivers again until it is acknowledged. */
export function arrivals({ onDuplicate, once: terms }: ConsumerCode): Deploy {
  return async (process) => {
    const once = instance(process, terms);
    let runs = 0;
    await once.start();
    return {
      async attempt(request) {
        const { key, payload } = request as Ask;
        const result = await once.consume(
          { tenant: "acme", source: "payments", id: key },
          async ({ tx, send }) => {
            const row = { identity: key, payload };
            await tx.insert(EFFECTS, { ...row, phase: "message" });
            await send("payment.seen", row);
            return { by: `${process.name}${++runs}` };
          },
          { onDuplicate, maxDurationMs: 300 },
        );
        return acknowledged(result, onDuplicate);
      },
    };
  };
}

/** What a queue makes of a result: an acknowledgement is final, everything else is delivered again. */
function acknowledged(result: ConsumeResult<{ by: string }>, onDuplicate: ConsumerCode["onDuplicate"]): Answer {
  switch (result.kind) {
    case "unsettled":
      return { kind: "later", text: result.why };
    case "done":
    case "replayed":
      return { kind: "final", text: onDuplicate === "replay" ? `200 ${result.value.by}` : "200 acknowledged" };
    default:
      return { kind: "final", text: "200 acknowledged" };
  }
}
