import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  createOncekey,
  type FetchAnswer,
  type FetchOptions,
  type FetchRecord,
  type FetchRequest,
  found,
  jsonAnswer,
  none,
  ok,
  type Recover,
} from "oncekey";
import { type MemoryStore, memoryStore } from "oncekey/memory";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

/** One request as it arrived. */
interface Arrived {
  readonly method: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

type Behaviour = (res: ServerResponse, arrived: Arrived) => void;

const arrived: Arrived[] = [];
let script: Behaviour[] = [];
const answers: Behaviour = (res) =>
  res
    .writeHead(201, { "content-type": "application/json", "set-cookie": "session=hidden", "x-request-id": "r1" })
    .end('{"id":"auth_1","amount":9007199254740993,"rate":0.10000000000000001}');
const withStatus =
  (status: number): Behaviour =>
  (res) =>
    res.writeHead(status, { location: "/elsewhere" }).end("{}");

const server = createServer(async (req, res) => {
  const chunks: Buffer[] = [];
  for await (const chunk of req as AsyncIterable<Buffer>) chunks.push(chunk);
  const one = { method: req.method ?? "", headers: req.headers, body: Buffer.concat(chunks).toString() };
  arrived.push(one);
  (script.shift() ?? answers)(res, one);
});
let url = "";

beforeEach(async () => {
  arrived.length = 0;
  script = [];
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/authorizations`;
});
afterEach(
  () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    }),
);

const dedupes: Recover<FetchRequest, FetchRecord> = { dedupes: { forMs: 3_600_000 } };

/** A store whose clock can be put forward, so that a lease lapses without waiting for it. */
function world() {
  let aheadMs = 0;
  const store = memoryStore({ clock: () => Date.now() + aheadMs });
  const passTime = (ms: number) => {
    aheadMs += ms;
  };
  return { store, passTime };
}

interface Charge {
  readonly store: MemoryStore;
  readonly options?: Partial<FetchOptions>;
  readonly target?: string;
  /** Called with the answer, before the operation completes. */
  readonly after?: (answer: FetchAnswer) => Promise<void> | void;
}

/** One attempt by a process of its own. */
async function charge({ store, options = {}, target = url, after }: Charge) {
  const once = createOncekey({ store, waitMs: 0, onError: () => {} });
  const operation = once.phases({
    name: "charges.create",
    version: 1,
    async run(op) {
      const answer = await op.fetch("authorize", target, {
        json: { amount: 9007199254740993n },
        timeoutMs: 5_000,
        recover: dedupes,
        ...options,
      });
      await after?.(answer);
      return op.complete(async () => ok({ status: answer.status, text: answer.text() }));
    },
  });
  await once.start();
  return once.run(operation, { scope: { tenant: "acme", client: null }, key: "k", input: {} });
}

const keys = () => arrived.map(({ headers }) => headers["idempotency-key"]);

describe("op.fetch", () => {
  it("sends the request with the derived key, and gives the answer", async () => {
    const all: FetchAnswer[] = [];
    const after = (answer: FetchAnswer) => void all.push(answer);
    expect((await charge({ ...world(), after })).kind).toBe("completed");
    expect(arrived).toHaveLength(1);
    expect(arrived[0]).toMatchObject({ method: "POST", body: '{"amount":9007199254740993}' });
    expect(arrived[0]?.headers["content-type"]).toBe("application/json");
    expect(keys()[0]).toMatch(/^[A-Za-z0-9_-]{43}$/);
    const [seen] = all;
    expect(seen?.status).toBe(201);
    expect(seen?.json()).toEqual({ id: "auth_1", amount: 9007199254740993n, rate: 0.1 });
    expect(seen?.headers).toMatchObject({ "content-type": "application/json", "x-request-id": "r1" });
    expect(seen?.headers).not.toHaveProperty("set-cookie");
  });

  it("takes another header and another form of the key", async () => {
    const options = {
      keyHeader: "PayPal-Request-Id",
      keyForm: "uuid",
      headers: { "paypal-request-id": "mine" },
    } as const;
    await charge({ ...world(), options });
    expect(arrived[0]?.headers["paypal-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
    expect(arrived[0]?.headers["idempotency-key"]).toBeUndefined();
  });

  it("repeats a call whose answer was cut, under the same key", async () => {
    const beforeHead: Behaviour = (res) => res.destroy();
    const inBody: Behaviour = (res) => {
      res.writeHead(201, { "content-length": "100" });
      res.write('{"id":', () => res.destroy());
    };
    script = [beforeHead, inBody];
    const result = await charge(world());
    expect(result.kind).toBe("completed");
    expect(arrived).toHaveLength(3);
    expect(new Set(keys()).size).toBe(1);
  });

  it.each([500, 503, 408, 409, 425, 429])("does not take %i for an answer", async (status) => {
    script = [withStatus(status)];
    expect((await charge(world())).kind).toBe("completed");
    expect(arrived).toHaveLength(2);
    expect(new Set(keys()).size).toBe(1);
  });

  it.each([204, 302, 400, 401, 402, 404, 422])("takes %i for an answer, and follows no redirect", async (status) => {
    script = [withStatus(status)];
    const seen: number[] = [];
    const after = (answer: FetchAnswer) => void seen.push(answer.status);
    expect((await charge({ ...world(), after })).kind).toBe("completed");
    expect(seen).toEqual([status]);
    expect(arrived).toHaveLength(1);
  });

  it("lets the call say which statuses are no answer", async () => {
    script = [withStatus(401), withStatus(409)];
    const seen: number[] = [];
    const after = (answer: FetchAnswer) => void seen.push(answer.status);
    await charge({ ...world(), options: { unknownStatuses: [401] }, after });
    expect(seen).toEqual([409]);
    expect(new Set(keys()).size).toBe(1);
  });

  it("lets the call say by the body that an answer is none", async () => {
    script = [
      (res) => res.writeHead(422).end('{"errorCode":"704"}'),
      (res) => res.writeHead(422).end('{"errorCode":"1"}'),
    ];
    const seen: unknown[] = [];
    const isUnknown = (answer: FetchAnswer) => answer.text().includes('"704"');
    await charge({ ...world(), options: { isUnknown }, after: (answer) => void seen.push(answer.json()) });
    expect(seen).toEqual([{ errorCode: "1" }]);
    expect(arrived).toHaveLength(2);
  });

  it("gives the recorded answer on a resume, and sends nothing", async () => {
    const { store, passTime } = world();
    const seen: unknown[] = [];
    const look = ({ text, json, ...record }: FetchAnswer) => void seen.push([record, text(), json()]);
    const crashing = (answer: FetchAnswer) => {
      look(answer);
      throw new Error("crashed");
    };
    await expect(charge({ store, after: crashing })).rejects.toThrow("crashed");
    passTime(60_000);
    expect((await charge({ store, after: look })).kind).toBe("completed");
    expect(arrived).toHaveLength(1);
    expect(seen).toHaveLength(2);
    expect(seen[1]).toEqual(seen[0]);
  });

  it("sends the same key on a resume, with credentials that were renewed in between", async () => {
    const { store, passTime } = world();
    const settles = { find: async () => none(), settlesWithinMs: 6_000 };
    const asked: string[] = [];
    const renewed = (token: string): Partial<FetchOptions> => ({
      recover: settles,
      headers: ({ key, body }) => {
        asked.push(`${key} ${body?.length}`);
        return { "x-api-key": token };
      },
    });
    script = [withStatus(500)];
    expect((await charge({ store, options: renewed("first") })).kind).toBe("unknown");
    passTime(3_600_000);
    expect((await charge({ store, options: renewed("second") })).kind).toBe("completed");
    expect(arrived.map(({ headers }) => headers["x-api-key"])).toEqual(["first", "second"]);
    expect(keys()[1]).toBe(keys()[0]);
    expect(asked).toEqual([`${keys()[0]} 27`, `${keys()[0]} 27`]);
  });

  it("compares plain headers on a resume, except those that carry credentials", async () => {
    const settles = { find: async () => none(), settlesWithinMs: 6_000 };
    for (const [changed, kind] of [
      [{ Authorization: "Bearer 2", "x-version": "1" }, "completed"],
      [{ Authorization: "Bearer 1", "x-version": "2" }, "unknown"],
    ] as const) {
      const { store, passTime } = world();
      script = [withStatus(500)];
      const first = { authorization: "Bearer 1", "X-Version": "1" };
      expect((await charge({ store, options: { recover: settles, headers: first } })).kind).toBe("unknown");
      passTime(3_600_000);
      arrived.length = 0;
      expect((await charge({ store, options: { recover: settles, headers: changed } })).kind).toBe(kind);
      expect(arrived.map(({ headers }) => headers.authorization)).toEqual(kind === "completed" ? ["Bearer 2"] : []);
    }
  });

  it("stores nothing of the credentials", async () => {
    const { store } = world();
    const id: { bytes?: Uint8Array } = {};
    const openIntent = store.openIntent.bind(store);
    store.openIntent = (entry, ...rest) => {
      id.bytes = entry;
      return openIntent(entry, ...rest);
    };
    const options: Partial<FetchOptions> = {
      recover: { find: async () => none(), settlesWithinMs: 6_000 },
      headers: () => ({ "x-api-key": "sk_secret" }),
    };
    const after = () => {
      throw new Error("crashed");
    };
    await expect(charge({ store, options, after })).rejects.toThrow("crashed");
    expect(arrived[0]?.headers["x-api-key"]).toBe("sk_secret");
    const { records, intents } = await store.journal(id.bytes as Uint8Array);
    const stored = [...records.map(({ value }) => Buffer.from(value).toString()), JSON.stringify(intents)].join();
    expect(stored).toContain("201");
    expect(stored).not.toMatch(/sk_secret|hidden/);
  });

  it("is found by a look-up that gives what the answer would have been", async () => {
    const seen: unknown[] = [];
    script = [(res) => res.destroy()];
    const find = async () => found(jsonAnswer(201, { id: "auth_1", amount: 9007199254740993n }));
    const options: Partial<FetchOptions> = { recover: { find, settlesWithinMs: 6_000 } };
    const after = (answer: FetchAnswer) => void seen.push(answer.json());
    expect((await charge({ ...world(), options, after })).kind).toBe("completed");
    expect(seen).toEqual([{ id: "auth_1", amount: 9007199254740993n }]);
    expect(arrived).toHaveLength(1);
  });

  it("gives up an answer that is too large or does not come, and says so to the other side", async () => {
    const closed = new Promise<void>((resolve) => {
      script = [(res) => void res.on("close", resolve)];
    });
    const once = { recover: { atMostOnce: true } } as const;
    expect((await charge({ ...world(), options: { ...once, timeoutMs: 50 } })).kind).toBe("unknown");
    await closed;
    script = [(res) => res.writeHead(200).end("x".repeat(1_001))];
    expect((await charge({ ...world(), options: { ...once, maxAnswerBytes: 1_000 } })).kind).toBe("unknown");
    script = [(res) => res.writeHead(200).end("x".repeat(1_000))];
    expect((await charge({ ...world(), options: { ...once, maxAnswerBytes: 1_000 } })).kind).toBe("completed");
  });

  it("sends nothing of a call that could not be sent, or could not be settled", async () => {
    const wrong: [Partial<FetchOptions>, string, string?][] = [
      [{}, "oncekey_config_invalid", "no url"],
      [{}, "oncekey_config_invalid", "http://user:secret@127.0.0.1/"],
      [{ body: "a", json: {} }, "oncekey_config_invalid"],
      [{ method: "GET" }, "oncekey_config_invalid"],
      [{ headers: { "bad name": "1" } }, "oncekey_config_invalid"],
      [{ keyHeader: "bad name" }, "oncekey_config_invalid"],
      [{ timeoutMs: 0 }, "oncekey_recover_missing"],
      [{ recover: {} as never }, "oncekey_recover_missing"],
      [{ keyForm: "UUID" as never }, "oncekey_recover_missing"],
    ];
    for (const [options, code, target = url] of wrong) {
      const failure = await charge({ ...world(), options, target }).catch((error: unknown) => error);
      expect(failure).toMatchObject({ code });
      expect(String(failure)).not.toContain("secret");
    }
    expect(arrived).toHaveLength(0);
  });
});
