import { type ClientErrorCode, codes, createOncekey, OncekeyError, ok } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { bind } from "../../src/http/gate.ts";
import { shopify } from "../../src/http/profiles/shopify.ts";
import { exchangeOf, headerOf, textOf } from "../../src/testing/profile-harness.ts";

const clientCodes = Object.entries(codes).flatMap(([code, { audience }]) =>
  audience === "client" ? [code as ClientErrorCode] : [],
);

describe("the codes of the shopify profile", () => {
  it("are the two documented ones about a key, and those of a request's errors", () => {
    const told = (kind: string | undefined) =>
      new Set(
        clientCodes.map((code) => shopify.refusals[code]).flatMap((row) => (row.kind === kind ? [row.error] : [])),
      );
    expect(told("userErrors")).toEqual(
      new Set(["IDEMPOTENCY_KEY_PARAMETER_MISMATCH", "IDEMPOTENCY_CONCURRENT_REQUEST"]),
    );
    expect(told(undefined)).toEqual(new Set(["BAD_REQUEST", "ACCESS_DENIED", "INTERNAL_SERVER_ERROR"]));
  });

  it("send a client back with the same key wherever that is the advice, and nowhere else", () => {
    for (const code of clientCodes) {
      const { error } = shopify.refusals[code];
      if (error === "IDEMPOTENCY_CONCURRENT_REQUEST") expect(codes[code]).toMatchObject({ retry: "same_key" });
      if (error === "IDEMPOTENCY_KEY_PARAMETER_MISMATCH") expect(codes[code]).toMatchObject({ retry: "new_key" });
      // What may have been done must never read as if it had failed: its client would take a new key.
      expect(error).not.toBe("IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED");
    }
  });

  it("come with a status that is no success on a route that is no GraphQL", () => {
    for (const code of clientCodes) expect(shopify.refusals[code].status).toBeGreaterThanOrEqual(400);
  });
});

/** A route of the profile over a memory store. */
async function route() {
  let runs = 0;
  const once = createOncekey({ store: memoryStore(), profile: "shopify", onError: () => {} });
  const operation = once.transaction({
    name: "charges.create",
    version: 1,
    input: { body: z.strictObject({ amount: z.number() }) },
    async run() {
      runs++;
      return ok({ run: runs });
    },
  });
  const gate = bind(operation, { scope: () => ({ tenant: "acme", client: null }) });
  await once.start();
  const send = (body: object) =>
    gate.answer(exchangeOf({ headers: { "content-type": "application/json" }, body: JSON.stringify(body) }));
  return { send, ran: () => runs };
}

describe("a plain route of the shopify profile", () => {
  it.each(["idempotencyKey", "unique_token"])(
    "takes the key of the member %s, which is no part of the operation's input",
    async (name) => {
      const { send, ran } = await route();
      const [first, again] = [await send({ [name]: "k", amount: 1 }), await send({ [name]: "k", amount: 1 })];
      expect(textOf(again)).toBe(textOf(first));
      expect(ran()).toBe(1);
    },
  );

  it("refuses two keys at once", async () => {
    const { send, ran } = await route();
    const answer = await send({ idempotencyKey: "a", unique_token: "b", amount: 1 });
    expect(answer.status).toBe(400);
    expect(JSON.parse(textOf(answer))).toMatchObject({ errors: [{ extensions: { code: "BAD_REQUEST" } }] });
    expect(ran()).toBe(0);
  });

  it("answers in JSON of its own, never in a problem body", async () => {
    const { send } = await route();
    await send({ unique_token: "k", amount: 1 });
    const answer = await send({ unique_token: "k", amount: 2 });
    expect(headerOf(answer, "content-type")).toBe("application/json; charset=utf-8");
    expect(JSON.parse(textOf(answer))).toEqual({
      userErrors: [{ field: null, message: expect.any(String), code: "IDEMPOTENCY_KEY_PARAMETER_MISMATCH" }],
    });
  });
});

it("the profile's name is one that exists", () => {
  expect(() => createOncekey({ store: memoryStore(), profile: "shopify" })).not.toThrow();
  expect(() => createOncekey({ store: memoryStore(), profile: "shopfy" })).toThrow(OncekeyError);
});
