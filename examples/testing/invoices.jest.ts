import { memoryStore } from "oncekey/memory";
import { expectOnce, forEachCrashPoint } from "oncekey/testing";
import { invoicesApp } from "./invoices.ts";

// Jest hands it to every file; its types come from @types/jest, or import it from "@jest/globals".
declare const test: (name: string, run: () => Promise<void>) => void;

const request = { path: "/invoices", headers: { authorization: "Bearer acme" }, body: { amount: 5 } };

test("a client that tries again gets one invoice", async () => {
  const store = memoryStore();
  await expectOnce({ app: await invoicesApp({ store }), request, effects: () => store.rows("invoices").length });
});

test("wherever the process dies, the retry ends with one invoice", async () => {
  await forEachCrashPoint({ runKind: "transaction" }, async (crash) => {
    const store = memoryStore();
    const app = await invoicesApp({ store });
    const dying = await invoicesApp({ store: crash.store(store), onPoint: crash.onPoint });
    await expectOnce({ app, request, effects: () => store.rows("invoices").length, dies: { app: dying, at: crash } });
  });
});
