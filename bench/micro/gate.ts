import { created, createOncekey, type Operation } from "oncekey";
import { memoryStore } from "oncekey/memory";
import type { OperationRequest } from "../../src/engine/request.ts";
import type { AnyResult } from "../../src/engine/run-result.ts";
import type { Exchange } from "../../src/http/exchange.ts";
import { bind, type Gate } from "../../src/http/gate.ts";
import { jsonBody, parseAndHash, type Spelling } from "./body.ts";
import { exchangeOf } from "./request.ts";
import type { Subject } from "./subject.ts";

const scope = () => ({ tenant: "acme", client: "app" });

/** What the business of the measured operation is: nothing, so that what is left is the library's. */
const answerOf = () => ({ id: "ord_1", status: "accepted" });

/** A gate around an operation of a started instance over the memory store, which is what the requests go through. */
export async function memoryGate(change: (operation: Operation) => Operation = (same) => same): Promise<Gate<null>> {
  const once = createOncekey({ store: memoryStore(), waitMs: 60_000, maxWaiters: 100_000, maxWaitersPerKey: 100_000 });
  const operation = once.transaction({
    name: "orders.create",
    version: 1,
    run: async () => created("/v1/orders/1", answerOf()),
  });
  await once.start();
  return bind<null>(change(operation), { scope });
}

/** The same operation, over an engine that asks for what a new request needs, and stores nothing. */
function withoutStore(operation: Operation, withInput: boolean): Operation {
  const answer = created("/v1/orders/1", answerOf());
  const execute = async (_: Operation, { proof, input }: OperationRequest): Promise<AnyResult> => {
    await proof.fingerprint(proof.ring.form(proof.compare));
    await proof.fingerprint(proof.ring.lockForm(proof.compare));
    if (withInput) await input();
    return { kind: "completed", outcome: answer };
  };
  const { engine } = operation;
  return {
    ...operation,
    engine: {
      settings: engine.settings,
      ring: engine.ring,
      refused: () => {},
      state: async () => "none",
      bound: () => {},
      execute,
    },
  };
}

/** Everything of a new request but the store: what the library's processor time is judged by. */
export function admission(spelling: Spelling, withInput = false): Subject {
  const all = withInput ? "gate, key, fingerprint and the handler's input" : "gate, key and fingerprint";
  return {
    name: withInput ? `gate-input-${spelling}` : `gate-${spelling}`,
    what: `${all} of a new request, answer included; no store; ${spelling} JSON`,
    against: "JSON.parse and one SHA-256 of the same body",
    async pair(bytes) {
      const body = jsonBody(bytes, spelling);
      const gate = await memoryGate((operation) => withoutStore(operation, withInput));
      let made = 0;
      return { work: () => gate.answer(exchangeOf(body, `key-${made++}`)), yardstick: parseAndHash(body) };
    },
  };
}

/** A handler as it stands without the library: reads, parses, answers. */
async function plain(exchange: Exchange): Promise<unknown> {
  const read = await exchange.readBody(1_048_576);
  if (read.kind !== "bytes") throw new Error("The body was not read as bytes.");
  const input: unknown = JSON.parse(Buffer.from(read.bytes).toString());
  const body = Buffer.from(JSON.stringify(answerOf()));
  return { input, status: 201, headers: [["location", "/v1/orders/1"]], body };
}

/** So many keys of one store, or the size of its tables would be measured. */
const KEYS = 2_000;

/** A whole new request through the memory store. */
export const freshRequest: Subject = {
  name: "request-fresh",
  what: "a whole new request through the memory store: claim, run, store, answer",
  against: "a plain handler: read, JSON.parse, answer",
  async pair(bytes) {
    const body = jsonBody(bytes);
    let gate = await memoryGate();
    let made = 0;
    return {
      async work() {
        if (++made % KEYS === 0) gate = await memoryGate();
        return gate.answer(exchangeOf(body, `key-${made}`));
      },
      yardstick: () => plain(exchangeOf(body, "")),
    };
  },
};

/** The same request once more, byte for byte. */
export const replayedRequest: Subject = {
  name: "request-replayed",
  what: "a byte-equal retry through the memory store",
  against: "a plain handler: read, JSON.parse, answer",
  async pair(bytes) {
    const body = jsonBody(bytes);
    const gate = await memoryGate();
    await gate.answer(exchangeOf(body, "key"));
    return { work: () => gate.answer(exchangeOf(body, "key")), yardstick: () => plain(exchangeOf(body, "")) };
  },
};
