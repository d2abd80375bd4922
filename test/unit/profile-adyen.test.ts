import { type ClientErrorCode, codes, createOncekey, ok } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import { bind } from "../../src/http/gate.ts";
import { adyen } from "../../src/http/profiles/adyen.ts";
import { problemAnswer } from "../../src/http/refusal.ts";
import { exchangeOf, headerOf, textOf } from "../../src/testing/profile-harness.ts";

const clientCodes = Object.entries(codes).flatMap(([code, { audience }]) =>
  audience === "client" ? [code as ClientErrorCode] : [],
);
const asked = { method: "POST", target: "/v72/payments", key: "k", requestId: "6ba7b810-9dad-41d1-80b4-00c04fd430c8" };

/** What the first request needs changed, not repeated, though its key stays good. */
const CORRECTED = new Set<ClientErrorCode>([
  "idempotency_request_invalid",
  "idempotency_request_too_large",
  "idempotency_request_unsupported",
  "idempotency_forbidden",
]);

describe("every refusal", () => {
  it.each(clientCodes)(
    "%s is an error object of Adyen's, transient exactly where the key is to be sent again",
    (code) => {
      const answer = problemAnswer(adyen, { code, detail: "What happened.", state: "none" }, asked);
      const { retry } = codes[code] as { readonly retry: string };
      expect(headerOf(answer, "transient-error")).toBe(String(retry === "same_key" && !CORRECTED.has(code)));
      expect(JSON.parse(textOf(answer))).toEqual({
        // The libraries read the code only where this is a number, and then believe it rather than the status line.
        status: answer.status,
        errorCode: expect.stringMatching(/^\d{3}$/),
        message: "What happened.",
        errorType: expect.stringMatching(/^(?:internal|validation|security)$/),
        pspReference: "6BA7B8109DAD41D1",
      });
    },
  );

  it("says by the missing echo that nothing was processed under the key", () => {
    const answer = problemAnswer(adyen, { code: "idempotency_in_progress", detail: "", state: "none" }, asked);
    expect(headerOf(answer, "idempotency-key")).toBeUndefined();
  });
});

/** A route of the profile over a memory store. */
async function route() {
  let runs = 0;
  const once = createOncekey({ store: memoryStore(), profile: "adyen", onError: () => {} });
  const run = async () => ok({ run: ++runs });
  const gate = bind(once.transaction({ name: "payments.create", version: 1, run }), {
    scope: () => ({ tenant: "acme", client: null }),
  });
  await once.start();
  const send = (key: string | null, method = "POST") =>
    gate.answer(exchangeOf({ method, headers: key === null ? {} : { "idempotency-key": key }, body: "" }));
  return { send, runs: () => runs };
}

describe("the echo of the key", () => {
  it("comes with the first answer and with each repeated one, and with none that had no key", async () => {
    const { send, runs } = await route();
    const echoes = [await send("k"), await send("k"), await send(null)].map((answer) =>
      headerOf(answer, "idempotency-key"),
    );
    expect(echoes).toEqual(["k", "k", undefined]);
    expect(runs()).toBe(2);
  });

  it.each(["PUT", "PATCH", "DELETE"])("does not come on %s, where keys do nothing", async (method) => {
    const { send, runs } = await route();
    const echoes = [await send("k", method), await send("k", method)].map((answer) =>
      headerOf(answer, "idempotency-key"),
    );
    expect(echoes).toEqual([undefined, undefined]);
    expect(runs()).toBe(2);
  });

  it("64 characters are the longest key, which 65 are not", async () => {
    const { send } = await route();
    expect((await send("k".repeat(64))).status).toBe(200);
    expect((await send("k".repeat(65))).status).toBe(400);
  });
});
