import { type ClientErrorCode, codes, createOncekey, reject, respond } from "oncekey";
import { idempotent } from "oncekey/fetch";
import { memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import { google } from "../../src/http/profiles/google.ts";
import { problemAnswer } from "../../src/http/refusal.ts";

const asked = { method: "POST", target: "/", key: "k", requestId: "0a1b2c3d-4e5f-4a6b-8c7d-0123456789ab" };
const RPC = "type.googleapis.com/google.rpc.";

/** The HTTP mapping of google.rpc.Code, of the codes used here. */
const HTTP = { INVALID_ARGUMENT: 400, FAILED_PRECONDITION: 400, PERMISSION_DENIED: 403, UNAVAILABLE: 503 };
/** Corrected by the caller before the same id is sent again. */
const CORRECTED = ["idempotency_request_invalid", "idempotency_request_too_large", "idempotency_request_unsupported"];

function refusal(code: ClientErrorCode, retryAfterMs?: number) {
  const answer = problemAnswer(google, { code, detail: "What to do.", state: "none", retryAfterMs }, asked);
  return JSON.parse(Buffer.from(answer.body as Uint8Array).toString()).error;
}

describe("Google's refusals", () => {
  for (const code of Object.keys(google.refusals) as ClientErrorCode[]) {
    it(`are a google.rpc.Status, UNAVAILABLE if the same request may be sent again: ${code}`, () => {
      const error = refusal(code);
      expect(Object.keys(error)).toEqual(["code", "message", "status", "details"]);
      expect(error.code).toBe(HTTP[error.status as keyof typeof HTTP]);
      expect(error.details[0]).toEqual({
        "@type": `${RPC}ErrorInfo`,
        reason: expect.stringMatching(/^[A-Z][A-Z_]{1,62}$/),
        domain: "oncekey",
        metadata: {},
      });
      const helps = codes[code].retry === "same_key" && ![...CORRECTED, "idempotency_forbidden"].includes(code);
      expect(error.status === "UNAVAILABLE").toBe(helps);
    });
  }

  it("name the field that is wrong, and when to come back", () => {
    expect(refusal("idempotency_payload_mismatch").details[1]).toEqual({
      "@type": `${RPC}BadRequest`,
      fieldViolations: [{ field: "request_id", description: "What to do." }],
    });
    expect(refusal("idempotency_in_progress", 1_500).details[1]).toEqual({
      "@type": `${RPC}RetryInfo`,
      retryDelay: "2s",
    });
  });
});

const ID = "3f2b8c1e-7d64-4c3a-9b57-1a2b3c4d5e6f";

/** An operation over a memory store, bound to the Fetch interface; `does` says what each run ends in. */
async function service(does: (run: number) => "done" | "refused" = () => "done") {
  const once = createOncekey({ store: memoryStore(), profile: "google" });
  let runs = 0;
  const run = async () => {
    runs++;
    const headers = { "content-type": "application/json" };
    return does(runs) === "done" ? respond(200, JSON.stringify({ run: runs }), headers) : reject(409, { run: runs });
  };
  const scope = () => ({ tenant: "acme", client: null });
  const handle = idempotent(once.transaction({ name: "things.create", version: 1, run }), { scope });
  await once.start();
  return async (query: string, body: unknown = {}) => {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await handle(new Request(`http://localhost/v1/things${query}`, init));
    const { error, run: ran } = (await response.json()) as { error?: { status: string }; run?: number };
    return error?.status ?? ran;
  };
}

describe("Google's request id", () => {
  it("may stand in the query or in the body, in either spelling", async () => {
    for (const [query, body] of [
      [`?requestId=${ID}`, {}],
      [`?request_id=${ID}`, {}],
      ["", { requestId: ID }],
      ["", { request_id: ID }],
    ] as const) {
      const ask = await service();
      expect([await ask(query, body), await ask(query, body)]).toEqual([1, 1]);
    }
  });

  it("is the same in capitals: never a second run, and another query or body is told", async () => {
    const ask = await service();
    expect(await ask(`?requestId=${ID}`)).toBe(1);
    expect(await ask(`?requestId=${ID.toUpperCase()}`)).toBe("INVALID_ARGUMENT");
    expect(await ask(`?requestId=${ID}`)).toBe(1);
  });

  it("is optional: without one every request runs", async () => {
    const ask = await service();
    expect([await ask(""), await ask(""), await ask("", { requestId: null })]).toEqual([1, 2, 3]);
  });

  const malformed = {
    "the zero UUID": "00000000-0000-0000-0000-000000000000",
    "a UUID of version 1": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "a UUID of version 7": "01890a5d-ac96-774b-bcce-b302099a8057",
    "a UUID of another variant": "3f2b8c1e-7d64-4c3a-cb57-1a2b3c4d5e6f",
    "a UUID in braces": `{${ID}}`,
    "a UUID without dashes": ID.replaceAll("-", ""),
    "more than a UUID": `${ID}0`,
    nothing: "",
  };
  for (const [what, id] of Object.entries(malformed)) {
    it(`is refused where it is ${what}`, async () => {
      const ask = await service();
      expect(await ask(`?requestId=${encodeURIComponent(id)}`)).toBe("INVALID_ARGUMENT");
      expect(await ask("", { requestId: id })).toBe("INVALID_ARGUMENT");
      expect(await ask("", { requestId: ID })).toBe(1);
    });
  }

  it("is refused where both spellings are there, or one of them twice", async () => {
    const ask = await service();
    expect(await ask("", { requestId: ID, request_id: ID })).toBe("INVALID_ARGUMENT");
    expect(await ask(`?requestId=${ID}&requestId=${ID}`)).toBe("INVALID_ARGUMENT");
    expect(await ask("", { requestId: 7 })).toBe("INVALID_ARGUMENT");
  });

  it("gives a duplicate the successful answer only: what failed runs again", async () => {
    const ask = await service((run) => (run < 3 ? "refused" : "done"));
    expect([await ask(`?requestId=${ID}`), await ask(`?requestId=${ID}`)]).toEqual([1, 2]);
    expect([await ask(`?requestId=${ID}`), await ask(`?requestId=${ID}`)]).toEqual([3, 3]);
  });
});
