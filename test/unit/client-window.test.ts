import { memoryStorage, type StoredSubmission } from "oncekey/client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ClientDesk, clientDesk, NOON } from "../support/client-desk.ts";
import { type ClientServer, cut, json, problem, type Reply, startClientServer } from "../support/client-server.ts";

let server: ClientServer;
beforeEach(async () => {
  server = await startClientServer();
});
afterEach(() => server.close());

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const submit = ({ client }: ClientDesk) => client.submit("cart-1", { url: server.url, json: { amount: 1 } });
const key = (at: number) => server.arrived[at]?.headers["idempotency-key"];

/** Takes the request and cuts, while time passes on the client's clocks. */
function cutAfter(desk: ClientDesk, passing: (desk: ClientDesk) => void): Reply {
  return (...reply) => {
    passing(desk);
    cut(...reply);
  };
}

/** A submission that was sent once and lost its answer; as its storage shows it to the next process. */
async function lostAnswer(headers: Record<string, string> = {}) {
  const storage = memoryStorage();
  const stop = new AbortController();
  const desk = clientDesk({
    storage,
    retryWindowMs: 100 * HOUR,
    random: () => 0,
    onEvent: ({ kind }) => kind === "pause" && stop.abort(),
  });
  server.replies = [json(503, {}, headers)];
  const request = { url: server.url, json: { amount: 1 } };
  expect(await desk.client.submit("cart-1", request, { signal: stop.signal })).toEqual({ kind: "aborted", sent: true });
  return { storage, sent: server.arrived.length };
}

describe("the retry window", () => {
  it("ends the attempts, with what was answered last", async () => {
    server.replies = [json(503, { code: "down" })];
    const desk = clientDesk({ retryWindowMs: 10 * MINUTE, random: () => 0.5 });
    const result = await submit(desk);
    expect(result).toMatchObject({ kind: "unknown", why: "window_over", sent: true, response: { status: 503 } });
    const spentMs = desk.pauses.reduce((sum, ms) => sum + ms, 0);
    expect(spentMs).toBeLessThan(10 * MINUTE);
    // The next pause would have been 15 s.
    expect(spentMs).toBeGreaterThanOrEqual(10 * MINUTE - 15_000);
    expect(server.arrived).toHaveLength(desk.pauses.length + 1);
    expect(new Set(server.arrived.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
  });

  it("counts over restarts by the wall clock, and is checked before resume sends", async () => {
    const desk = clientDesk();
    server.replies = [cutAfter(desk, ({ pass }) => pass(10 * MINUTE))];
    expect(await submit(desk)).toMatchObject({ kind: "unknown", why: "window_over" });
    server.replies = [json(201, {})];
    const later = clientDesk({ storage: desk.storage }, NOON + HOUR);
    expect([...(await later.client.resume()).values()]).toMatchObject([
      { kind: "unknown", why: "window_over", sent: true },
    ]);
    expect(server.arrived).toHaveLength(1);
    // Who knows that the server remembers for longer says so, and then the same key goes out.
    const patient = clientDesk({ storage: desk.storage, retryWindowMs: 20 * HOUR }, NOON + HOUR);
    expect([...(await patient.client.resume()).values()]).toMatchObject([{ kind: "succeeded" }]);
    expect(key(1)).toBe(key(0));
  });

  it("says that the server is in the dark where the server said so to the end", async () => {
    server.replies = [problem(409, "idempotency_outcome_unknown", "same_key", { "retry-after": "30" })];
    expect(await submit(clientDesk())).toMatchObject({
      kind: "unknown",
      why: "in_the_dark",
      response: { status: 409 },
    });
  });

  it("ends in a refusal where nothing was ever taken, and in no doubt", async () => {
    server.replies = [json(429, {}, { "retry-after": "30" })];
    const desk = clientDesk();
    expect(await submit(desk)).toMatchObject({
      kind: "refused",
      retry: "same_key",
      certain: true,
      response: { status: 429 },
    });
    expect(server.arrived.length).toBeGreaterThan(10);
    server.replies = [json(201, {})];
    expect(await submit(desk)).toMatchObject({ kind: "succeeded" });
    expect(key(0)).toBe(key(server.arrived.length - 1));
  });

  it("ends unsent where nobody was there, and then any time is early enough", async () => {
    const { url } = server;
    await server.close();
    const desk = clientDesk();
    const request = { url, json: { amount: 1 } };
    expect(await desk.client.submit("cart-1", request)).toEqual({
      kind: "unknown",
      why: "window_over",
      response: null,
      sent: false,
    });
    server = await startClientServer(Number(new URL(url).port));
    const monthsLater = clientDesk({ storage: desk.storage }, NOON + 2_000 * HOUR);
    expect(await monthsLater.client.submit("cart-1", request)).toMatchObject({ kind: "succeeded" });
    expect(key(0)).toBe((await desk.storage.get("cart-1"))?.key);
  });
});

describe("the server's retention", () => {
  it("shortens the window, with a warning, less what an attempt may take", async () => {
    server.replies = [json(503, {}, { "idempotency-retention": "120" })];
    const desk = clientDesk({ random: () => 0.5 });
    expect(await submit(desk)).toMatchObject({ kind: "unknown", why: "retention_over", sent: true });
    expect(desk.told().filter((what) => what === "warning: window_shortened")).toHaveLength(1);
    const spentMs = desk.pauses.reduce((sum, ms) => sum + ms, 0);
    expect(spentMs).toBeLessThan(108_000);
    expect(spentMs).toBeGreaterThanOrEqual(108_000 - 15_000);
  });

  it("is kept with the submission, so that resume after it sends nothing", async () => {
    const { storage, sent } = await lostAnswer({ "idempotency-retention": "86400" });
    expect((await storage.get("cart-1"))?.retentionMs).toBe(24 * HOUR);
    server.replies = [json(201, {})];
    const late = clientDesk({ storage, retryWindowMs: 100 * HOUR }, NOON + 24 * HOUR - 30_000);
    expect([...(await late.client.resume()).values()]).toEqual([
      { kind: "unknown", why: "retention_over", response: null, sent: true },
    ]);
    expect(server.arrived).toHaveLength(sent);
    const inTime = clientDesk({ storage, retryWindowMs: 100 * HOUR }, NOON + 23 * HOUR);
    expect([...(await inTime.client.resume()).values()]).toMatchObject([{ kind: "succeeded" }]);
  });

  it.each(["", "-5", "NaN", "1e3", "soon", "99999999999999999999"])("is not read from nonsense: %j", async (header) => {
    const { storage } = await lostAnswer({ "idempotency-retention": header });
    expect((await storage.get("cart-1"))?.retentionMs).toBeNull();
  });

  it("does not concern what no attempt can have carried out", async () => {
    server.replies = [json(429, {}, { "idempotency-retention": "0" }), json(201, {})];
    expect(await submit(clientDesk())).toMatchObject({ kind: "succeeded" });
  });

  it("of nothing at all forbids every repetition", async () => {
    server.replies = [json(503, {}, { "idempotency-retention": "0" })];
    expect(await submit(clientDesk())).toMatchObject({ kind: "unknown", why: "retention_over" });
    expect(server.arrived).toHaveLength(1);
  });
});

describe("a clock that moves", () => {
  const jumps = [
    ["back by a day", -24 * HOUR],
    ["ahead by five minutes", 5 * MINUTE],
  ] as const;
  it.each(jumps)("%s while it is sent: the attempts go on, with a warning", async (_, ms) => {
    const desk = clientDesk();
    server.replies = [
      cutAfter(desk, ({ clock }) => {
        clock.wallMs += ms;
      }),
      json(201, {}),
    ];
    expect(await submit(desk)).toMatchObject({ kind: "succeeded" });
    expect(desk.told().filter((what) => what === "warning: clock_moved")).toHaveLength(1);
    expect(key(1)).toBe(key(0));
  });

  it("back while it is sent does not lengthen the window", async () => {
    const desk = clientDesk({ random: () => 0.5 });
    server.replies = [
      cutAfter(desk, ({ clock }) => {
        clock.wallMs -= 24 * HOUR;
      }),
      json(503, {}),
    ];
    expect(await submit(desk)).toMatchObject({ kind: "unknown", why: "window_over" });
    expect(desk.pauses.reduce((sum, one) => sum + one, 0)).toBeLessThan(10 * MINUTE);
  });

  it("ahead beyond the window, as a computer that slept shows it: nothing is sent again", async () => {
    const desk = clientDesk();
    server.replies = [
      cutAfter(desk, ({ clock }) => {
        clock.wallMs += 48 * HOUR;
      }),
      json(201, {}),
    ];
    expect(await submit(desk)).toMatchObject({ kind: "unknown", why: "window_over", sent: true });
    expect(desk.told()).toContain("warning: clock_moved");
    expect(server.arrived).toHaveLength(1);
  });

  it("takes nothing from an answer that arrives, nor from a submission that was never sent", async () => {
    const desk = clientDesk();
    await desk.client.submission("cart-1", { url: server.url, json: { amount: 1 } });
    desk.clock.wallMs += 1_000 * HOUR;
    server.replies = [
      (...reply) => {
        desk.clock.wallMs -= 2_000 * HOUR;
        json(201, {})(...reply);
      },
    ];
    expect(await submit(desk)).toMatchObject({ kind: "succeeded" });
  });

  it("back over a restart: nobody knows what passed, so nothing is sent, until the clock is right again", async () => {
    const { storage, sent } = await lostAnswer();
    server.replies = [json(201, {})];
    const wrong = clientDesk({ storage }, NOON - HOUR);
    expect([...(await wrong.client.resume()).values()]).toEqual([
      { kind: "unknown", why: "retention_over", response: null, sent: true },
    ]);
    expect(wrong.told()).toContain("warning: clock_moved");
    expect(server.arrived).toHaveLength(sent);
    const right = clientDesk({ storage }, NOON + MINUTE);
    expect([...(await right.client.resume()).values()]).toMatchObject([{ kind: "succeeded" }]);
  });

  it("corrected by a little over a restart: it is sent", async () => {
    const { storage } = await lostAnswer();
    server.replies = [json(201, {})];
    const corrected = clientDesk({ storage }, NOON - 4_000);
    expect([...(await corrected.client.resume()).values()]).toMatchObject([{ kind: "succeeded" }]);
    expect(corrected.told()).not.toContain("warning: clock_moved");
  });

  it("leaves numbers in the storage that JSON can hold", async () => {
    const { storage } = await lostAnswer();
    await clientDesk({ storage }, NOON - HOUR).client.resume();
    const kept = (await storage.get("cart-1")) as StoredSubmission;
    expect(JSON.parse(JSON.stringify(kept))).toEqual(kept);
  });
});
