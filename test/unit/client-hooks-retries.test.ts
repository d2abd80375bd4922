import axios from "axios";
import axiosRetry from "axios-retry";
import { keyForAxios, withIdempotency } from "oncekey/client/hooks";
import pRetry from "p-retry";
import { Agent, RetryAgent, request, fetch as undiciFetch } from "undici";
import { describe, expect, it, onTestFinished } from "vitest";
import { answer, cutAfter, cutBefore, hostileServer, type SeenRequest } from "../support/hostile-server.ts";
import { statusOf } from "../support/retrying-clients.ts";

const troubles = [cutBefore, answer(503), answer(409, { "retry-after": "0" }), cutAfter];
const json = { "content-type": "application/json" };
const BODY = '{"amount":1200}';

function expectOne(seen: readonly SeenRequest[], attempts: number): void {
  expect(seen).toHaveLength(attempts);
  expect(new Set(seen.map(({ key }) => key)).size).toBe(1);
  expect(new Set(seen.map(({ body }) => body))).toEqual(new Set([BODY]));
}

function retryAgent(): RetryAgent {
  const agent = new RetryAgent(new Agent(), {
    methods: ["POST"],
    statusCodes: [409, 503],
    minTimeout: 1,
    maxRetries: 5,
  });
  onTestFinished(() => agent.close());
  return agent;
}

describe("packages that retry", () => {
  it("p-retry keeps the key of an init object, and of an action whose init is written anew", async () => {
    const send = withIdempotency(fetch);
    const init = { method: "POST", headers: json, body: BODY };
    const action = send.action();
    for (const attempt of [(url: string) => send(url, init), (url: string) => action(url, { ...init })]) {
      const { url, seen, executed, plan } = await hostileServer();
      plan(...troubles);
      const status = await pRetry(() => statusOf(attempt(`${url}/things`)), { minTimeout: 1, maxTimeout: 1 });
      expect(status).toBe(201);
      expectOne(seen, 5);
      expect(executed).toEqual([BODY]);
    }
  });

  it.each(["before", "after"])("axios-retry keeps the key, installed %s the hook", async (order) => {
    const { url, seen, executed, plan } = await hostileServer();
    plan(...troubles);
    const api = axios.create();
    const retrying = () => axiosRetry(api, { retries: 5, retryCondition: () => true, retryDelay: () => 1 });
    if (order === "before") retrying();
    api.interceptors.request.use(keyForAxios());
    if (order === "after") retrying();
    expect((await api.post(`${url}/things`, { amount: 1200 })).status).toBe(201);
    expectOne(seen, 5);
    expect(executed).toEqual([BODY]);
  });

  it("undici's RetryAgent under request repeats the whole under one key", async () => {
    const { url, seen, executed, plan } = await hostileServer();
    plan(...troubles);
    const headers = { ...json, "idempotency-key": "made-by-the-caller" };
    const got = await request(`${url}/things`, { method: "POST", headers, body: BODY, dispatcher: retryAgent() });
    await got.body.dump();
    expect(got.statusCode).toBe(201);
    expectOne(seen, 5);
    expect(executed).toEqual([BODY]);
  });

  it("undici's RetryAgent under fetch makes no second key, but cannot repeat a body: the call fails, and nothing is done twice", async () => {
    const { url, seen, executed, plan } = await hostileServer();
    plan(async ({ work, response }) => {
      await work();
      response.writeHead(503).end();
    });
    const send = withIdempotency(undiciFetch);
    const init = { method: "POST", headers: json, body: BODY, dispatcher: retryAgent() };
    await expect(send(`${url}/things`, init)).rejects.toThrow("fetch failed");
    expect(new Set(seen.map(({ key }) => key)).size).toBe(1);
    expect(executed).toEqual([BODY]);
  });
});
