import { memoryStorage, type StoredSubmission, type SubmissionStorage } from "oncekey/client";
import { describe, expect, it } from "vitest";
import { clientDesk, NOON, watchedStorage } from "../support/client-desk.ts";
import { ordersOf, testServer } from "../support/client-orders.ts";
import { cut, json, problem, type Reply, silence, text, until } from "../support/client-server.ts";

// Ways to a second key, a late repetition, or a result that says more than is known.

const DAY_MS = 86_400_000;

const server = testServer();
const { order, distinctKeys: keys, leaveOpen } = ordersOf(server);

describe("what was cleared", () => {
  it("keeps its key also where the storage is full when it is to be kept again", async () => {
    const { storage, medium } = watchedStorage();
    const { client } = await leaveOpen({ storage });
    await storage.remove("cart-1");
    medium.full = true;
    expect(await client.submit("cart-1", order())).toMatchObject({ kind: "not_kept" });
    medium.full = false;
    expect(await client.submit("cart-1", order())).toMatchObject({ kind: "succeeded" });
    expect([server.arrived.length, keys()]).toEqual([2, 1]);
  });

  it("stays in the way where the server said that it was carried out", async () => {
    server.replies = [problem(409, "idempotency_response_unavailable", "never")];
    const { client, storage } = clientDesk();
    expect(await client.submit("cart-1", order())).toMatchObject({ kind: "refused", retry: "never" });
    await storage.remove("cart-1");
    expect(await client.submit("cart-1", order())).toMatchObject({ kind: "refused", retry: "never" });
    expect(await client.submit("cart-1", order(200))).toMatchObject({ kind: "in_the_way", settled: true });
    expect(server.arrived).toHaveLength(1);
  });

  it("is found by its name while the page lives, and not resumed: another tab may have discarded it", async () => {
    const { client, storage } = await leaveOpen();
    await storage.remove("cart-1");
    expect([await client.pending(), (await client.resume()).size]).toEqual([[], 0]);
    expect(server.arrived).toHaveLength(1);
    expect(await (await client.find("cart-1"))?.send()).toMatchObject({ kind: "succeeded" });
    expect([server.arrived.length, keys()]).toEqual([2, 1]);
  });
});

describe("a submission that a page has at hand", () => {
  it("is known as sent also where a list from before that is read meanwhile", async () => {
    const storage = memoryStorage();
    const { list } = storage;
    const { client } = clientDesk({ storage });
    await client.submission("cart-1", order());
    server.replies = [silence];
    storage.list = async () => {
      const before = await list();
      void client.submit("cart-1", order(), { signal: stop.signal });
      await until(() => server.arrived.length === 1);
      return before;
    };
    const stop = new AbortController();
    expect((await client.pending()).map(({ sent }) => sent)).toEqual([true]);
    await storage.remove("cart-1");
    const other = client.submit("cart-1", order(200));
    stop.abort();
    expect(await other).toMatchObject({ kind: "in_the_way" });
  });

  it("gives its result, and is not sent anew, after its time in the storage", async () => {
    const { client, pass } = clientDesk();
    const made = await client.submission("cart-1", order());
    await made.send();
    const found = await client.find("cart-1");
    pass(DAY_MS + 1);
    expect(await made.send()).toMatchObject({ kind: "succeeded" });
    expect(await found?.send()).toMatchObject({ kind: "succeeded" });
    expect(server.arrived).toHaveLength(1);
  });

  it("does not begin its window anew where it is no longer stored", async () => {
    const { storage } = await leaveOpen();
    const later = clientDesk({ storage });
    const found = await later.client.find("cart-1");
    await found?.discard();
    later.pass(DAY_MS);
    expect(await found?.send()).toMatchObject({ kind: "unknown", why: "window_over", sent: true });
    expect(server.arrived).toHaveLength(1);
  });
});

describe("the removal of what is past its time", () => {
  /** Another client has taken the name since the list was read, and sent. */
  async function overtaken(damage: (storage: SubmissionStorage) => void): Promise<SubmissionStorage> {
    const storage = memoryStorage();
    const { list } = storage;
    const old = clientDesk({ storage });
    await old.client.submit("cart-1", order());
    old.pass(DAY_MS + 1);
    storage.list = async () => {
      const all = await list();
      await leaveOpenLater(storage);
      damage(storage);
      return all;
    };
    await old.client.pending();
    // Its turn comes after those that the removal has waited for.
    await storage.exclusively("cart-1", async () => {});
    return storage;
  }
  const leaveOpenLater = (storage: SubmissionStorage) =>
    leaveOpen({ storage, now: () => NOON + DAY_MS + 2, monotonicMs: () => 1_000 });

  it("leaves what took its name, also where that cannot be read just then", async () => {
    const storage = await overtaken((medium) => {
      const { get } = medium;
      medium.get = (name) => {
        medium.get = get;
        return name === "cart-1" ? Promise.reject(new Error("EMFILE")) : get(name);
      };
    });
    expect(await storage.get("cart-1")).toMatchObject({ attempts: 1, settled: null });
  });
});

describe("a refusal after a lost answer", () => {
  const page = "<!DOCTYPE html><title>400 Request Header Or Cookie Too Large</title>";
  const cases: readonly (readonly [string, Reply, boolean])[] = [
    ["409 of another API: the earlier attempt may be the conflict", json(409, { code: "already_exists" }), false],
    ["410", json(410, {}), false],
    ["412: the earlier attempt may have changed what is asked for", json(412, {}), false],
    ["413 of a proxy", text(413, "too large"), false],
    ["415", json(415, {}), false],
    ["431", text(431, ""), false],
    ["451", json(451, {}), false],
    ["a page with 400, of a proxy", text(400, page, { "content-type": "text/html" }), false],
    ["too late to be told from a repetition", problem(412, "idempotency_retry_too_late", "never"), false],
    ["a request that is invalid", problem(400, "idempotency_request_invalid", "same_key"), false],
    ["Stripe's word for a mismatch", json(400, { error: { type: "idempotency_error" } }), false],
    ["the answer is no longer kept", problem(409, "idempotency_response_unavailable", "never"), true],
    ["409 that is a replay", json(409, { code: "sold_out" }, { "idempotent-replayed": "true" }), true],
    ["400 of the business", json(400, { code: "amount_too_small" }), true],
    ["400 in XML", text(400, "<?xml version='1.0'?><Code>Refused</Code>", { "content-type": "text/xml" }), true],
  ];
  it.each(cases)("%s", async (_, reply, certain) => {
    server.replies = [cut, reply];
    const { client } = clientDesk();
    expect(await client.submit("cart-1", order())).toMatchObject({ kind: "refused", certain });
    const edited = await client.submit("cart-1", order(200));
    if (!certain) expect(edited).toMatchObject({ kind: "in_the_way", settled: false });
    expect(keys()).toBe(edited.kind === "in_the_way" ? 1 : 2);
  });

  it("of the first attempt is in no doubt, whatever its status", async () => {
    for (const [at, status] of [409, 410, 412, 413].entries()) {
      server.replies = [json(status, {})];
      expect(await clientDesk().client.submit(`cart-${at}`, order())).toMatchObject({ kind: "refused", certain: true });
    }
  });
});

describe("an answer", () => {
  it("that says with 429 that the first request still runs may have been carried out", async () => {
    server.replies = [problem(429, "idempotency_in_progress", "same_key"), json(401, {})];
    const { client, told } = clientDesk();
    expect(await client.submit("cart-1", order())).toMatchObject({ kind: "refused", certain: false });
    expect(told()).toContain("pause: in_progress");
  });

  it.each(["Text/HTML", "TEXT/HTML; charset=UTF-8", "Application/Problem+JSON"])(
    "of the type %s is none of an API, in whatever case",
    async (type) => {
      server.replies = [text(200, "<h1>Sign in</h1>", { "content-type": type, "content-length": "16" })];
      expect(await clientDesk().client.submit("cart-1", order())).toMatchObject({ why: "not_understood" });
    },
  );

  it("of several JSON texts is not cut because it is no single one", async () => {
    server.replies = [
      text(200, '{"a":1}\n{"a":2}\n', { "content-type": "application/x-ndjson", "transfer-encoding": "chunked" }),
    ];
    expect(await clientDesk().client.submit("cart-1", order())).toMatchObject({ kind: "succeeded" });
    expect(server.arrived).toHaveLength(1);
  });
});

describe("a stored submission without an instant", () => {
  it("is not sent, where a storage gives it all the same", async () => {
    const { storage } = await leaveOpen();
    const { spentAt: _, ...rest } = (await storage.get("cart-1")) as StoredSubmission;
    await storage.put(rest as StoredSubmission);
    const later = clientDesk({ storage }, NOON + DAY_MS);
    expect(await later.client.submit("cart-1", order())).toMatchObject({ kind: "unknown", sent: true });
    expect(server.arrived).toHaveLength(1);
  });
});
