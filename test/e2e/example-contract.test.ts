import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { effects, list, post, send } from "./support/client.ts";
import { type Example, makeDataDir, removeDataDir, startExample } from "./support/example.ts";

let dir: string;
let example: Example;
let api: string;

beforeAll(async () => {
  dir = makeDataDir();
  example = await startExample({ env: { ONCEKEY_DATA_DIR: dir } });
  api = example.api;
});

afterAll(async () => {
  await example?.stop();
  removeDataDir(dir);
});

const invoice = { customer_id: "cus_1", amount_minor: 1999, currency: "EUR" };
const charge = { amount_minor: 1999, currency: "EUR", source: "tok_visa" };
const form = { "content-type": "application/x-www-form-urlencoded" };

describe("authentication", () => {
  it.each([
    ["no token", null],
    ["an unknown token", "sk_test_nobody"],
  ])("answers 401 to %s", async (_what, token) => {
    expect((await post(`${api}/v1/invoices`, "auth-1", invoice, { token })).status).toBe(401);
    expect((await send("GET", `${api}/v1/invoices`, { token })).status).toBe(401);
  });

  it("answers 401, never the replay, while a token is revoked", async () => {
    const first = await post(`${api}/v1/invoices`, "revoked-1", invoice);
    expect(first.status).toBe(201);
    await send("POST", `${api}/lab/revoke`, { token: null, body: { token: "sk_test_acme" } });
    const refused = await post(`${api}/v1/invoices`, "revoked-1", invoice);
    expect(refused.status).toBe(401);
    expect(refused.headers["idempotent-replayed"]).toBeUndefined();
    await send("POST", `${api}/lab/restore`, { token: null, body: { token: "sk_test_acme" } });
    const again = await post(`${api}/v1/invoices`, "revoked-1", invoice);
    expect(again.status).toBe(201);
    expect(again.bytes.equals(first.bytes)).toBe(true);
  });

  it("keeps the keys of tenants and of their clients apart", async () => {
    const tokens = ["sk_test_acme", "sk_test_acme_batch", "sk_test_globex"];
    const answers = await Promise.all(
      tokens.map((token) => post(`${api}/v1/invoices`, "shared-key", invoice, { token })),
    );
    expect(answers.map((answer) => answer.status)).toEqual([201, 201, 201]);
    expect(new Set(answers.map((answer) => answer.json().id)).size).toBe(3);
    const globex = await list(`${api}/v1/invoices`, "sk_test_globex");
    expect(globex.map((one) => one.id)).toEqual([answers[2]?.json().id]);
    const foreign = answers[2]?.json().id;
    expect((await send("GET", `${api}/v1/invoices/${foreign}`)).status).toBe(404);
  });
});

describe("invoices", () => {
  it("are created once and replayed byte for byte", async () => {
    const first = await post(`${api}/v1/invoices`, "invoice-1", invoice);
    expect(first.status).toBe(201);
    expect(first.json()).toMatchObject({ status: "draft", ...invoice });
    expect(first.json().id).toMatch(/^inv_/);
    expect(first.headers.location).toBe(`/v1/invoices/${first.json().id}`);
    expect(first.headers["idempotent-replayed"]).toBeUndefined();
    const second = await post(`${api}/v1/invoices`, "invoice-1", invoice);
    expect(second.headers["idempotent-replayed"]).toBe("true");
    expect(second.headers.location).toBe(first.headers.location);
    expect(second.bytes.equals(first.bytes)).toBe(true);
    const read = await send("GET", `${api}${first.headers.location}`);
    expect(read.text).toBe(first.text);
  });

  it("collapse 50 concurrent duplicates into one", async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, () =>
        post(`${api}/v1/invoices`, "invoice-50", invoice, { headers: { "x-lab-delay-ms": "300" } }),
      ),
    );
    expect(new Set(answers.map((answer) => `${answer.status} ${answer.text}`)).size).toBe(1);
    expect(answers.filter((answer) => answer.headers["idempotent-replayed"] === undefined)).toHaveLength(1);
    expect((await effects(api, "invoices")).get("invoice-50")).toBe(1);
  });

  it("refuse another payload under a used key, metadata included", async () => {
    await post(`${api}/v1/invoices`, "invoice-meta", { ...invoice, metadata: { order: 1 } });
    const other = await post(`${api}/v1/invoices`, "invoice-meta", { ...invoice, metadata: { order: 2 } });
    expect(other.status).toBe(422);
    expect(other.json().code).toBe("idempotency_payload_mismatch");
  });

  it("keep every digit of amounts and metadata", async () => {
    const digits =
      '{"customer_id":"c","amount_minor":9007199254740993,"currency":"EUR","metadata":{"n":123456789012345678901}}';
    const first = await post(`${api}/v1/invoices`, "digits", digits);
    expect(first.status).toBe(201);
    expect(first.text).toContain('"amount_minor":9007199254740993');
    expect(first.text).toContain('"n":123456789012345678901');
    const neighbour = digits.replace("740993", "740992");
    expect((await post(`${api}/v1/invoices`, "digits", neighbour)).status).toBe(422);
    const all = await send("GET", `${api}/v1/invoices`);
    expect(all.text).toContain('"amount_minor":9007199254740993');
  });

  it("accept forms, digits exact and metadata nested", async () => {
    const body = "customer_id=cus_1&amount_minor=9007199254740993&currency=EUR&metadata[a]=1&metadata[b][c]=x";
    const answer = await post(`${api}/v1/invoices`, "form-1", body, { headers: form });
    expect(answer.status).toBe(201);
    expect(answer.text).toContain('"amount_minor":9007199254740993');
    expect(answer.json().metadata).toEqual({ a: "1", b: { c: "x" } });
  });

  it.each([
    ["an unknown member", { ...invoice, extra: 1 }],
    ["a missing member", { customer_id: "c", currency: "EUR" }],
    ["a fraction", { ...invoice, amount_minor: 1.5 }],
    ["zero", { ...invoice, amount_minor: 0 }],
    ["a negative amount", { ...invoice, amount_minor: -1 }],
    ["an amount as text", { ...invoice, amount_minor: "100" }],
    ["metadata that is no object", { ...invoice, metadata: [1] }],
    ["a list", [invoice]],
  ])("refuse %s, store nothing and leave the key free", async (what, body) => {
    const key = `invalid-${what.replaceAll(" ", "-")}`;
    const refused = await post(`${api}/v1/invoices`, key, body);
    expect(refused.status).toBe(400);
    expect(refused.headers["content-type"]).toMatch(/^application\/problem\+json/);
    expect(refused.json()).toMatchObject({ code: "idempotency_request_invalid", retry: "same_key", state: "none" });
    expect((await effects(api, "invoices")).has(key)).toBe(false);
    expect((await post(`${api}/v1/invoices`, key, invoice)).status).toBe(201);
  });

  it("need a key", async () => {
    const answer = await send("POST", `${api}/v1/invoices`, { body: invoice });
    expect(answer.status).toBe(400);
    expect(answer.json().code).toBe("idempotency_key_missing");
  });

  it("are listed whole, oldest first", async () => {
    const token = "sk_test_globex";
    for (const n of [1, 2, 3])
      await post(`${api}/v1/invoices`, `order-${n}`, { ...invoice, amount_minor: n }, { token });
    const amounts = (await list(`${api}/v1/invoices`, token)).map((one) => one.amount_minor);
    expect(amounts.slice(-3)).toEqual([1, 2, 3]);
  });
});

describe("charges", () => {
  it("are authorized and captured once at the provider", async () => {
    const first = await post(`${api}/v1/charges`, "charge-1", charge);
    expect(first.status).toBe(201);
    const made = first.json();
    expect(made).toMatchObject({ status: "succeeded", ...charge });
    expect(made.id).toMatch(/^ch_/);
    const second = await post(`${api}/v1/charges`, "charge-1", charge);
    expect(second.bytes.equals(first.bytes)).toBe(true);
    const captures = (await list(`${example.psp}/captures`)).filter(
      (one) => one.authorization === made.psp_authorization,
    );
    expect(captures.map((one) => one.id)).toEqual([made.psp_capture]);
    const authorizations = (await list(`${example.psp}/authorizations`)).filter(
      (one) => one.id === made.psp_authorization,
    );
    expect(authorizations).toHaveLength(1);
    expect((await effects(api, "charges")).get("charge-1")).toBe(1);
  });

  it("carry every digit to the provider", async () => {
    const body = '{"amount_minor":9007199254740993,"currency":"EUR","source":"tok_visa"}';
    const answer = await post(`${api}/v1/charges`, "charge-digits", body);
    expect(answer.text).toContain('"amount_minor":9007199254740993');
    const captures = await send("GET", `${example.psp}/captures`);
    expect(captures.text).toContain('"amount_minor":9007199254740993');
  });

  it("that are declined stay on the books and are replayed", async () => {
    const declined = { ...charge, source: "tok_declined" };
    const first = await post(`${api}/v1/charges`, "declined-1", declined);
    expect(first.status).toBe(402);
    expect(first.headers["content-type"]).toMatch(/^application\/problem\+json/);
    expect(first.json().code).toBe("card_declined");
    const second = await post(`${api}/v1/charges`, "declined-1", declined);
    expect(second.status).toBe(402);
    expect(second.headers["idempotent-replayed"]).toBe("true");
    expect(second.bytes.equals(first.bytes)).toBe(true);
    const books = (await list(`${api}/v1/charges`)).filter((one) => one.status === "declined");
    expect(books.map((one) => one.id)).toContain(first.json().charge.id);
    expect((await effects(api, "charges")).get("declined-1")).toBe(1);
  });

  it("accept forms", async () => {
    const answer = await post(`${api}/v1/charges`, "charge-form", "amount_minor=5&currency=EUR&source=tok_visa", {
      headers: form,
    });
    expect(answer.status).toBe(201);
    expect(answer.json().amount_minor).toBe(5);
  });
});

describe("refunds", () => {
  const charged = async (key: string, amount = "1000") =>
    (await post(`${api}/v1/charges`, key, `{"amount_minor":${amount},"currency":"EUR","source":"tok_visa"}`)).json().id;

  it("are made once and replayed byte for byte", async () => {
    const charge_id = await charged("refund-charge-1");
    const first = await post(`${api}/v1/refunds`, "refund-1", { charge_id, amount_minor: 400 });
    expect(first.status).toBe(201);
    expect(first.json()).toMatchObject({ charge_id, amount_minor: 400 });
    const second = await post(`${api}/v1/refunds`, "refund-1", { charge_id, amount_minor: 400 });
    expect(second.headers["idempotent-replayed"]).toBe("true");
    expect(second.bytes.equals(first.bytes)).toBe(true);
    expect((await send("GET", `${api}${first.headers.location}`)).text).toBe(first.text);
    expect((await effects(api, "refunds")).get("refund-1")).toBe(1);
  });

  it("keep every digit", async () => {
    const charge_id = await charged("refund-charge-2", "9007199254740993");
    const answer = await post(
      `${api}/v1/refunds`,
      "refund-2",
      `{"charge_id":"${charge_id}","amount_minor":9007199254740993}`,
    );
    expect(answer.status).toBe(201);
    expect(answer.text).toContain('"amount_minor":9007199254740993');
    const neighbour = `{"charge_id":"${charge_id}","amount_minor":9007199254740992}`;
    expect((await post(`${api}/v1/refunds`, "refund-2", neighbour)).status).toBe(422);
  });

  it("never exceed their charge, and the refusal is replayed", async () => {
    const charge_id = await charged("refund-charge-3");
    const first = await post(`${api}/v1/refunds`, "refund-3", { charge_id, amount_minor: 1001 });
    expect(first.status).toBe(422);
    expect(first.json().code).toBe("refund_exceeds_charge");
    const second = await post(`${api}/v1/refunds`, "refund-3", { charge_id, amount_minor: 1001 });
    expect(second.headers["idempotent-replayed"]).toBe("true");
    const unknown = await post(`${api}/v1/refunds`, "refund-4", { charge_id: "ch_none", amount_minor: 1 });
    expect(unknown.status).toBe(404);
  });

  it("take JSON only", async () => {
    const answer = await post(`${api}/v1/refunds`, "refund-form", "charge_id=x&amount_minor=1", { headers: form });
    expect(answer.status).toBe(415);
    expect(answer.json().code).toBe("idempotency_request_unsupported");
  });

  it("refuse a body over the limit", async () => {
    for (const size of [2_000_000, 6_000_000]) {
      const answer = await post(`${api}/v1/refunds`, `refund-large-${size}`, `{"charge_id":"${"x".repeat(size)}"}`);
      expect(answer.status).toBe(413);
      expect(answer.json().code).toBe("idempotency_request_too_large");
    }
  });
});
