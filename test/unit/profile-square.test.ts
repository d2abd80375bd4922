import { type ClientErrorCode, codes, createOncekey, respond } from "oncekey";
import { idempotent } from "oncekey/fetch";
import { memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import { square } from "../../src/http/profiles/square.ts";
import { problemAnswer } from "../../src/http/refusal.ts";

const asked = { method: "POST", target: "/", key: "k", requestId: "0a1b2c3d-4e5f-4a6b-8c7d-0123456789ab" };

/** What Square's SDK sends again by itself. */
const isRetried = (status: number) => status === 408 || status === 429 || status >= 500;
/** Corrected by the caller before the same key is sent again. */
const CORRECTED = ["idempotency_request_invalid", "idempotency_request_too_large", "idempotency_request_unsupported"];

describe("Square's refusals", () => {
  for (const code of Object.keys(square.refusals) as ClientErrorCode[]) {
    it(`are errors of Square's form, sent again by its SDK if that can help: ${code}`, () => {
      const answer = problemAnswer(square, { code, detail: "What to do.", state: "none" }, asked);
      const { errors, ...others } = JSON.parse(Buffer.from(answer.body as Uint8Array).toString());
      expect(others).toEqual({});
      expect(errors).toEqual([
        expect.objectContaining({
          category: expect.stringMatching(/^(?:API|AUTHENTICATION|INVALID_REQUEST)_ERROR$/),
          code: expect.stringMatching(/^[A-Z_]+$/),
          detail: "What to do.",
        }),
      ]);
      const helps = codes[code].retry === "same_key" && ![...CORRECTED, "idempotency_forbidden"].includes(code);
      expect(isRetried(answer.status)).toBe(helps);
    });
  }
});

/** An operation over a memory store, bound to the Fetch interface; gives status and code of what it answers. */
async function service() {
  const once = createOncekey({ store: memoryStore(), profile: "square" });
  let runs = 0;
  const run = async () => respond(200, JSON.stringify({ run: ++runs }), { "content-type": "application/json" });
  const scope = () => ({ tenant: "acme", client: null });
  const handle = idempotent(once.transaction({ name: "payments.create", version: 1, run }), { scope });
  await once.start();
  return async (body: string, query = "") => {
    const headers = { "content-type": "application/json" };
    const response = await handle(
      new Request(`http://localhost/v2/payments${query}`, { method: "POST", headers, body }),
    );
    const { errors, run: ran } = (await response.json()) as { errors?: { code: string }[]; run?: number };
    return errors?.[0]?.code ?? ran;
  };
}

describe("Square's key", () => {
  const rows: readonly [what: string, body: string, code: string][] = [
    ["is missing", "{}", "MISSING_REQUIRED_PARAMETER"],
    ["is null", '{"idempotency_key":null}', "MISSING_REQUIRED_PARAMETER"],
    ["is inside of another member", '{"payment":{"idempotency_key":"k"}}', "MISSING_REQUIRED_PARAMETER"],
    ["belongs to a body that is a list", '[{"idempotency_key":"k"}]', "MISSING_REQUIRED_PARAMETER"],
    ["is empty", '{"idempotency_key":""}', "INVALID_VALUE"],
    ["is a number", '{"idempotency_key":7}', "INVALID_VALUE"],
    ["is a list", '{"idempotency_key":["k"]}', "INVALID_VALUE"],
    ["is false", '{"idempotency_key":false}', "INVALID_VALUE"],
    ["has 46 characters", JSON.stringify({ idempotency_key: "k".repeat(46) }), "INVALID_VALUE"],
    ["holds a line end", '{"idempotency_key":"a\\nb"}', "INVALID_VALUE"],
    ["is not ASCII", '{"idempotency_key":"Schlüssel"}', "INVALID_VALUE"],
    ["is there twice", '{"idempotency_key":"a","idempotency_key":"b"}', "BAD_REQUEST"],
    ["is in a body that is no JSON", "{idempotency_key", "BAD_REQUEST"],
  ];
  for (const [what, body, code] of rows) {
    it(`is refused where it ${what}`, async () => {
      const ask = await service();
      expect(await ask(body)).toBe(code);
      expect(await ask('{"idempotency_key":"k"}')).toBe(1);
    });
  }

  it("may hold what a header could not, up to 45 characters", async () => {
    const ask = await service();
    for (const [at, key] of ['say "k", please', "back\\slash", "k".repeat(45)].entries()) {
      const body = JSON.stringify({ idempotency_key: key });
      expect([await ask(body), await ask(body)]).toEqual([at + 1, at + 1]);
    }
  });

  it("is the same however the body is written, and another content under it is not", async () => {
    const ask = await service();
    expect(await ask('{"idempotency_key":"k","amount":1.0}')).toBe(1);
    expect(await ask('{ "amount": 1, "idempotency_key": "k" }')).toBe(1);
    expect(await ask('{"idempotency_key":"k","amount":2}')).toBe("IDEMPOTENCY_KEY_REUSED");
    expect(await ask('{"idempotency_key":"k","amount":9007199254740992}')).toBe("IDEMPOTENCY_KEY_REUSED");
  });
});
