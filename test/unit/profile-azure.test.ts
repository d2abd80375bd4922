import { type ClientErrorCode, createOncekey, reject, respond } from "oncekey";
import { idempotent } from "oncekey/fetch";
import { memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import { azure } from "../../src/http/profiles/azure.ts";
import { problemAnswer } from "../../src/http/refusal.ts";

const requestId = "0a1b2c3d-4e5f-4a6b-8c7d-0123456789ab";
const asked = { method: "POST", target: "/", key: "k", requestId };

/** `accepted` promises that the request is carried out once, `rejected` that this one is not: neither where nobody looked. */
function resultOf(code: ClientErrorCode): string | undefined {
  const unseen = /_(?:too_large|unsupported|forbidden|store_unavailable|contention|closing|version_unknown)$/;
  if (unseen.test(code)) return undefined;
  return /_(?:missing|invalid|mismatch|too_late)$/.test(code) ? "rejected" : "accepted";
}

describe("Azure's refusals", () => {
  for (const code of Object.keys(azure.refusals) as ClientErrorCode[]) {
    it(`are Azure error objects whose code is in the header too: ${code}`, () => {
      const answer = problemAnswer(azure, { code, detail: "What to do.", state: "none" }, asked);
      const headers = Object.fromEntries(answer.headers);
      const { error } = JSON.parse(Buffer.from(answer.body as Uint8Array).toString());
      expect(error).toMatchObject({ code: expect.stringMatching(/^[A-Z][A-Za-z]+$/), message: "What to do." });
      expect(headers).toMatchObject({ "x-ms-error-code": error.code, "x-ms-request-id": requestId });
      expect(headers["repeatability-result"]).toBe(resultOf(code));
    });
  }
});

const ID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";

/** An operation over a memory store, bound to the Fetch interface; gives what its answers say. */
async function service(fails: (run: number) => "throws" | "refuses" | "not" = () => "not") {
  const once = createOncekey({ store: memoryStore(), profile: "azure" });
  let runs = 0;
  const run = async () => {
    const does = fails(++runs);
    if (does === "throws") throw new Error("broken");
    if (does === "refuses") return reject(409, { code: "Conflict", run: runs });
    return respond(201, JSON.stringify({ run: runs }), { "content-type": "application/json" });
  };
  const scope = () => ({ tenant: "acme", client: null });
  const handle = idempotent(once.transaction({ name: "things.create", version: 1, run }), { scope });
  await once.start();
  const now = new Date().toUTCString();
  const ask = async (headers: Record<string, string>, body = "{}") => {
    const all = { "content-type": "application/json", ...headers };
    const response = await handle(new Request("http://localhost/things", { method: "POST", headers: all, body }));
    const { run: ran, error } = (await response.json()) as { run?: number; error?: { code: string } };
    return [response.status, response.headers.get("repeatability-result"), error?.code ?? ran];
  };
  return { ask, pair: { "repeatability-request-id": ID, "repeatability-first-sent": now } };
}

describe("Azure's profile", () => {
  it("accepts a repeatable request, and says so again for its repetition", async () => {
    const { ask, pair } = await service();
    expect(await ask(pair)).toEqual([201, "accepted", 1]);
    expect(await ask(pair)).toEqual([201, "accepted", 1]);
    // Another instant is no other request: it is the id that counts.
    expect(await ask({ ...pair, "repeatability-first-sent": new Date(Date.now() - 3_000).toUTCString() })).toEqual([
      201,
      "accepted",
      1,
    ]);
  });

  it("says nothing of repeatability to a request that did not ask for it", async () => {
    const { ask } = await service();
    expect(await ask({})).toEqual([201, null, 1]);
    expect(await ask({})).toEqual([201, null, 2]);
  });

  it("rejects one header without the other, a malformed one, and another content under the id", async () => {
    const { ask, pair } = await service();
    const { "repeatability-request-id": id, "repeatability-first-sent": sent } = pair;
    expect(await ask({ "repeatability-request-id": id })).toEqual([400, "rejected", "InvalidRequest"]);
    expect(await ask({ "repeatability-first-sent": sent })).toEqual([400, "rejected", "MissingRequiredHeader"]);
    expect(await ask({ ...pair, "repeatability-request-id": "mine" })).toEqual([400, "rejected", "InvalidHeaderValue"]);
    expect(await ask({ ...pair, "repeatability-first-sent": "now" })).toEqual([400, "rejected", "InvalidRequest"]);
    expect(await ask(pair)).toEqual([201, "accepted", 1]);
    expect(await ask(pair, '{"other":1}')).toEqual([400, "rejected", "RepeatedRequestMismatch"]);
    expect(await ask(pair)).toEqual([201, "accepted", 1]);
  });

  it("takes an id in capitals for the same one", async () => {
    const { ask, pair } = await service();
    const capitals = { ...pair, "repeatability-request-id": ID.toUpperCase() };
    expect([await ask(pair), await ask(capitals)]).toEqual([
      [201, "accepted", 1],
      [201, "accepted", 1],
    ]);
  });

  it("counts an id within its client id", async () => {
    const { ask, pair } = await service();
    const of = (client: string) => ask({ ...pair, "repeatability-client-id": client });
    expect([await of("a"), await of("a"), await of("b"), await ask(pair)].map(([, , run]) => run)).toEqual([
      1, 1, 2, 3,
    ]);
  });

  it("replays a 4xx, and runs again after a fault", async () => {
    const refusing = await service(() => "refuses");
    expect(await refusing.ask(refusing.pair)).toEqual([409, "accepted", 1]);
    expect(await refusing.ask(refusing.pair)).toEqual([409, "accepted", 1]);
    const failing = await service((run) => (run === 1 ? "throws" : "not"));
    await expect(failing.ask(failing.pair)).rejects.toThrow("broken");
    expect(await failing.ask(failing.pair)).toEqual([201, "accepted", 2]);
    expect(await failing.ask(failing.pair)).toEqual([201, "accepted", 2]);
  });
});
