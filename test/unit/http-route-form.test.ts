import { created, createOncekey, type RouteForm, reject, respond } from "oncekey";
import { idempotent } from "oncekey/fetch";
import { memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import * as z from "zod";

const scope = () => ({ tenant: "acme", client: null });

/** An older version of the API: amounts in major units under another name, bare answers. */
const legacy: RouteForm<Request> = {
  input: (body) => {
    const { total, ...others } = body as { total?: number };
    return { ...others, amount_minor: typeof total === "number" ? total * 100 : total };
  },
  answer: ({ status, body }, request) => {
    const { id, code } = JSON.parse(new TextDecoder().decode(body)) as { id?: string; code?: string };
    if (status >= 400) return respond(400, `refused: ${code}`, { "content-type": "text/plain" });
    return respond(200, `made ${id} for ${String(request.member("total"))}`, { "content-type": "text/plain" });
  },
};

async function invoices(binding: object = {}) {
  const once = createOncekey({ store: memoryStore() });
  const made: number[] = [];
  const create = once.transaction({
    name: "invoices.create",
    version: 1,
    input: { body: z.strictObject({ amount_minor: z.int(), idempotency_key: z.string().optional() }) },
    async run({ input }) {
      if (input.body.amount_minor > 1_000_000) return reject(422, { code: "too_much" });
      made.push(input.body.amount_minor);
      return created(`/v1/invoices/${made.length}`, { id: `inv_${made.length}` });
    },
  });
  await once.start();
  const route = idempotent(create, { scope, form: legacy, ...binding });
  const send = async (body: unknown, headers: Record<string, string> = { "idempotency-key": "k" }) => {
    const response = await route(
      new Request("http://localhost/v0/invoices", {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      }),
    );
    return { status: response.status, text: await response.text(), headers: response.headers };
  };
  return { once, create, made, send };
}

describe("a route with a form of its own", () => {
  it("gives the operation its input and the client its answer, on the run and on each replay", async () => {
    const { send, made } = await invoices();
    const first = await send({ total: 12 });
    const second = await send({ total: 12 });
    expect(first).toMatchObject({ status: 200, text: "made inv_1 for 12" });
    expect(second).toMatchObject({ status: 200, text: "made inv_1 for 12" });
    expect(second.headers.get("idempotent-replayed")).toBe("true");
    expect(made).toEqual([1_200]);
  });

  it("keeps comparing what was sent", async () => {
    const { send, made } = await invoices();
    await send({ total: 12 });
    expect((await send({ total: 13 })).status).toBe(422);
    expect(made).toEqual([1_200]);
  });

  it("shows rejections in its own form too, and lets the operation's schema refuse what it cannot read", async () => {
    const { send, made } = await invoices();
    expect(await send({ total: 99_999 })).toMatchObject({ status: 400, text: "refused: too_much" });
    expect(await send({ total: 99_999 })).toMatchObject({ status: 400, text: "refused: too_much" });
    const unreadable = await send({ total: "twelve" }, { "idempotency-key": "k2" });
    expect(JSON.parse(unreadable.text)).toMatchObject({ status: 400, code: "idempotency_request_invalid" });
    expect(made).toEqual([]);
  });

  it("is refused around a captured handler, whose answers have their form already", async () => {
    const { once } = await invoices();
    const other = createOncekey({ store: memoryStore() });
    const wrap = other.capture({ name: "invoices.wrap", version: 1, maxDurationMs: 1_000 });
    const handler = async () => new Response("as it is");
    expect(() => idempotent(wrap, { scope, form: legacy }, handler)).toThrowError(
      expect.objectContaining({ code: "oncekey_config_invalid" }),
    );
    await once.close();
  });
});

describe("the name of the key", () => {
  it("may be the route's own header", async () => {
    const { send, made } = await invoices({ keyName: "X-Request-Key" });
    const named = { "x-request-key": "k" };
    expect((await send({ total: 1 }, named)).status).toBe(200);
    expect((await send({ total: 1 }, named)).headers.get("idempotent-replayed")).toBe("true");
    const missing = await send({ total: 1 });
    expect(JSON.parse(missing.text)).toMatchObject({ code: "idempotency_key_missing" });
    expect(missing.text).toContain("x-request-key");
    expect(made).toHaveLength(1);
  });
});
