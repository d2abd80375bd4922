import { created, createOncekey } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { bind } from "../../src/http/gate.ts";
import { jsonBody } from "./body.ts";
import { exchangeOf } from "./request.ts";

/** Heap and buffers that so many waiting requests took, in bytes each. */
export interface Waiting {
  readonly bytes: number;
  readonly waiters: number;
  readonly bytesEach: number;
}

/** Memory in use once everything that can go has gone. Needs `--expose-gc`. */
async function held(): Promise<number> {
  for (let round = 0; round < 3; round++) {
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc?.();
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** Lets duplicates of one running request wait, each with a body that came over its own connection, and counts what they hold. */
export async function measureWaiting(bytes: number, waiters: number): Promise<Waiting> {
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const most = { waitMs: 600_000, maxWaiters: waiters, maxWaitersPerKey: waiters };
  const once = createOncekey({ store: memoryStore(), ...most });
  const operation = once.transaction({
    name: "orders.create",
    version: 1,
    maxDurationMs: 600_000,
    run: () => finished.then(() => created("/v1/orders/1", {})),
  });
  await once.start();
  const gate = bind<null>(operation, { scope: () => ({ tenant: "acme", client: "app" }) });
  const body = jsonBody(bytes);
  // A copy each: what a socket gave is nobody else's.
  const ask = () => gate.answer(exchangeOf(Uint8Array.from(body), "key"));
  const first = ask();
  const before = await held();
  const answers: Promise<unknown>[] = [];
  for (let waiter = 0; waiter < waiters; waiter++) answers.push(ask());
  const during = await held();
  finish();
  await Promise.all([first, ...answers]);
  return { bytes, waiters, bytesEach: (during - before) / waiters };
}
