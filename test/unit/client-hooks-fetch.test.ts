import axios from "axios";
import ky, { HTTPError } from "ky";
import { keyForKy, withIdempotency } from "oncekey/client/hooks";
import { describe, expect, it } from "vitest";
import { answer, cutAfter, cutBefore, hostileServer, raw } from "../support/hostile-server.ts";
import { repeated, statusOf } from "../support/retrying-clients.ts";

const post = (body: string): RequestInit => ({ method: "POST", headers: { "content-type": "application/json" }, body });
const refused = { name: "SubmissionError", code: "oncekey_submission_invalid" };

describe("withIdempotency", () => {
  it("takes one init object for one action, also after its answer was there but could not be read", async () => {
    const { url, seen, executed, plan } = await hostileServer();
    plan(raw("HTTP/1.1 201 Created\r\ncontent-length: 500\r\n\r\n{", { worked: true }));
    const send = withIdempotency(fetch);
    const init = post('{"a":1}');
    expect(await repeated(() => statusOf(send(`${url}/things`, init)))).toBe(201);
    const third = await send(`${url}/things`, init);
    expect(third.headers.get("idempotent-replayed")).toBe("true");
    expect(new Set(seen.map(({ key }) => key)).size).toBe(1);
    expect(executed).toEqual(['{"a":1}']);
  });

  it("takes two init objects for two actions, and does not change either", async () => {
    const { url, seen, executed } = await hostileServer();
    const send = withIdempotency(fetch);
    const inits = [post('{"a":1}'), post('{"a":1}')].map((init) => Object.freeze(init));
    for (const init of inits) await send(`${url}/things`, init);
    expect(new Set(seen.map(({ key }) => key)).size).toBe(2);
    expect(executed).toHaveLength(2);
    expect(inits).toEqual([post('{"a":1}'), post('{"a":1}')]);
  });

  it("never makes a second key for an init object whose content was changed: the server says so", async () => {
    const { url, seen, executed } = await hostileServer();
    const send = withIdempotency(fetch);
    const init = post('{"a":1}');
    await send(`${url}/things`, init);
    init.body = '{"a":2}';
    const second = await send(`${url}/things`, init);
    expect(second.status).toBe(422);
    expect(await second.json()).toMatchObject({ code: "idempotency_payload_mismatch", retry: "new_key" });
    expect(seen[1]?.key).toBe(seen[0]?.key);
    expect(executed).toEqual(['{"a":1}']);
  });

  it("refuses an init object that two addresses share, before anything is sent there", async () => {
    const { url, seen } = await hostileServer();
    const send = withIdempotency(fetch);
    const shared = { method: "POST" };
    await send(`${url}/orders/1/cancel`, shared);
    await send(new URL(`${url}/orders/1/cancel`), shared);
    await expect(send(`${url}/orders/2/cancel`, shared)).rejects.toMatchObject(refused);
    await send.action()(`${url}/orders/2/cancel`, shared);
    expect(seen.map(({ key }) => key === seen[0]?.key)).toEqual([true, true, false]);
  });

  it("sends concurrent attempts of one action under one key, and the API does it once", async () => {
    const { url, seen, executed } = await hostileServer();
    const send = withIdempotency(fetch).action();
    const statuses = await Promise.all(
      Array.from({ length: 8 }, () => statusOf(send(`${url}/things`, post('{"a":1}')))),
    );
    expect(new Set(statuses)).toEqual(new Set([201]));
    expect(new Set(seen.map(({ key }) => key)).size).toBe(1);
    expect(executed).toHaveLength(1);
  });

  it("gives each action a key of its own, or the one it is given", async () => {
    const { url, seen } = await hostileServer();
    const send = withIdempotency(fetch);
    for (const one of [send.action(), send.action(), send.action("mine-1")]) await one(`${url}/things`, post("{}"));
    expect(new Set(seen.map(({ key }) => key)).size).toBe(3);
    expect(seen[2]?.key).toBe("mine-1");
  });

  it.each([
    ["", "visible ASCII"],
    ["a b", "visible ASCII"],
    ["k".repeat(256), "visible ASCII"],
    ["a,b", "visible ASCII"],
    ["2ed6657d-e927-568b-95e1-2665a8aea6a2", "made from"],
  ])("refuses to act under a key that servers refuse or that is no key (%j)", (key, why) => {
    const make = () => withIdempotency(fetch).action(key);
    expect(make).toThrow(why);
    expect(make).toThrow(expect.objectContaining(refused));
  });

  it("leaves reading calls as they are, in every form of input", async () => {
    const { url, seen } = await hostileServer();
    const send = withIdempotency(fetch, { requireAction: true });
    const inputs = [url, new URL(url), new Request(url)];
    for (const input of inputs) await send(input as string);
    await send(new Request(url), { method: "HEAD" });
    expect(seen.map(({ method, key }) => [method, key])).toEqual([
      ...inputs.map(() => ["GET", undefined]),
      ["HEAD", undefined],
    ]);
  });

  it("puts the key on a Request that is sent in an action, and leaves the rest of it alone", async () => {
    const { url, seen, executed, plan } = await hostileServer();
    plan(cutAfter);
    const send = withIdempotency(fetch).action();
    const headers = { "content-type": "application/json", "x-own": "1" };
    const request = new Request(`${url}/things`, { method: "POST", headers, body: '{"a":1}' });
    expect(await repeated(() => statusOf(send(request.clone())))).toBe(201);
    expect(seen).toHaveLength(2);
    for (const one of seen) expect(one).toMatchObject({ method: "POST", body: '{"a":1}', headers: { "x-own": "1" } });
    expect(seen[1]?.key).toBe(seen[0]?.key);
    expect(executed).toHaveLength(1);
  });

  it("keeps the key that a Request brings", async () => {
    const { url, seen } = await hostileServer();
    const send = withIdempotency(fetch);
    await send(new Request(`${url}/things`, { ...post("{}"), headers: { "idempotency-key": "mine" } }));
    expect(seen.map(({ key }) => key)).toEqual(["mine"]);
  });

  it("refuses what it could not recognise in a repetition, before anything is sent", async () => {
    const { url, seen } = await hostileServer();
    const send = withIdempotency(fetch);
    const request = new Request(`${url}/things`, { method: "POST", body: "{}" });
    await expect(send(request)).rejects.toMatchObject(refused);
    await expect(send(request, { headers: { "x-own": "1" } })).rejects.toMatchObject(refused);
    await expect(send(`${url}/things`, request as unknown as RequestInit)).rejects.toMatchObject(refused);
    await expect(send.action()(`${url}/things`, request as unknown as RequestInit)).rejects.toMatchObject(refused);
    const strict = withIdempotency(fetch, { requireAction: true });
    await expect(strict(`${url}/things`, post("{}"))).rejects.toMatchObject(refused);
    expect(seen).toEqual([]);
    await strict.action()(`${url}/things`, post("{}"));
    expect(seen).toHaveLength(1);
  });

  it("says no key and no body in what it raises", async () => {
    const request = new Request("http://127.0.0.1/", { method: "POST", body: "a secret" });
    const failure = await withIdempotency(fetch)(request).catch((error: Error) => error);
    expect((failure as Error).message).toMatch(/action\(\).*Nothing was kept or sent\.$/);
    expect((failure as Error).message).not.toContain("secret");
  });

  it("is the same inside another: the outer one's key stays", async () => {
    const { url, seen, plan } = await hostileServer();
    plan(cutBefore);
    const send = withIdempotency(withIdempotency(fetch));
    const init = post("{}");
    expect(await repeated(() => statusOf(send(`${url}/things`, init)))).toBe(201);
    expect(new Set(seen.map(({ key }) => key)).size).toBe(1);
  });
});

/** What looks right and would make a key for each attempt: stopped, with nothing sent. */
describe("a wrapped fetch under a loop that it cannot see", () => {
  it("is refused as the fetch of ky, which copies the request for each attempt; an action is not", async () => {
    const { url, seen, executed, plan } = await hostileServer();
    const send = withIdempotency(fetch);
    const retry = { methods: ["post" as const], limit: 3, delay: () => 1 };
    const json = { a: 1 };
    await expect(ky.post(`${url}/things`, { fetch: send, json, retry })).rejects.toMatchObject(refused);
    expect(seen).toEqual([]);
    plan(cutBefore, answer(503), cutAfter);
    expect((await ky.post(`${url}/things`, { fetch: send.action(), json, retry })).status).toBe(201);
    expect(new Set(seen.map(({ key }) => key)).size).toBe(1);
    expect(executed).toEqual(['{"a":1}']);
  });

  it("is refused as the fetch of axios, which makes a Request of its own; an action is not", async () => {
    const { url, seen, executed, plan } = await hostileServer();
    const send = withIdempotency(fetch);
    const config = { adapter: "fetch" as const, headers: { "content-type": "application/json" } };
    const call = (used: typeof fetch) => axios.post(`${url}/things`, { a: 1 }, { ...config, env: { fetch: used } });
    await expect(call(send)).rejects.toThrow();
    expect(seen).toEqual([]);
    plan(cutBefore, cutAfter);
    const one = send.action();
    expect((await repeated(() => call(one))).status).toBe(201);
    expect(new Set(seen.map(({ key }) => key)).size).toBe(1);
    expect(executed).toEqual(['{"a":1}']);
  });

  it("is stopped in ky where another hook takes the key off before a retry", async () => {
    const { url, seen, plan } = await hostileServer();
    plan(answer(503));
    const api = ky.create({
      hooks: {
        beforeRequest: [keyForKy()],
        beforeRetry: [({ request }) => request.headers.delete("idempotency-key")],
      },
      retry: { methods: ["post"], limit: 2, delay: () => 1 },
    });
    const failure = await api.post(`${url}/things`, { json: {} }).catch((error: unknown) => error);
    expect(failure).not.toBeInstanceOf(HTTPError);
    expect(failure).toMatchObject(refused);
    expect(seen).toHaveLength(1);
  });
});
