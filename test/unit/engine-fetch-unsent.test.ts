import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  createOncekey,
  type FetchAnswer,
  type FetchOptions,
  type FetchRecord,
  type FetchRequest,
  none,
  ok,
  type Recover,
  reject,
} from "oncekey";
import { type MemoryStore, memoryStore } from "oncekey/memory";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const arrived: string[] = [];
let script: ((res: ServerResponse) => void)[] = [];
let url = "";

const server = createServer((req, res) => {
  req.resume().on("end", () => {
    arrived.push(String(req.headers["idempotency-key"]));
    (script.shift() ?? ((one: ServerResponse) => void one.writeHead(201).end("{}")))(res);
  });
});
beforeEach(async () => {
  arrived.length = 0;
  script = [];
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});
afterEach(
  () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    }),
);

type Form = Recover<FetchRequest, FetchRecord>;
const dedupes: Form = { dedupes: { forMs: 3_600_000 } };
const settles: Form = { find: async () => none(), settlesWithinMs: 6_000 };
const cancels: Form = { find: async () => none(), cancel: async () => {} };
const never: Form = { atMostOnce: true };

const withoutAnswer = (res: ServerResponse) => void res.writeHead(500).end();
const failing = () => {
  throw new Error("no token today");
};

function world() {
  let aheadMs = 0;
  const told: unknown[] = [];
  const store = memoryStore({ clock: () => Date.now() + aheadMs });
  const passTime = (ms: number) => {
    aheadMs += ms;
  };
  const ids: Uint8Array[] = [];
  const claim = store.claim.bind(store);
  store.claim = (entry, ...rest) => {
    ids.push(entry.id);
    return claim(entry, ...rest);
  };
  const entries = async () => (await Promise.all(ids.map((id) => store.read(id)))).filter((entry) => entry !== null);
  return { store, passTime, told, entries };
}

interface Charge {
  readonly store: MemoryStore;
  readonly told?: unknown[];
  readonly options?: Partial<FetchOptions>;
  readonly target?: string;
  readonly after?: (answer: FetchAnswer) => void;
  /** The operation takes a failed call for one that was not made. */
  readonly refuses?: boolean;
}

/** One attempt by a process of its own. */
async function charge({ store, told = [], options = {}, target = url, after, refuses = false }: Charge) {
  const once = createOncekey({ store, waitMs: 0, onError: (error) => void told.push(error) });
  const operation = once.phases({
    name: "charges.create",
    version: 1,
    async run(op) {
      const call = op.fetch("authorize", target, { json: {}, timeoutMs: 5_000, recover: dedupes, ...options });
      const answer = await (refuses ? call.catch(() => null) : call);
      if (answer === null) return op.complete(async () => reject(502, { code: "not_made" }));
      after?.(answer);
      return op.complete(async () => ok({ status: answer.status }));
    },
  });
  await once.start();
  return once.run(operation, { scope: { tenant: "acme", client: null }, key: "k", input: {} });
}

describe("a call of op.fetch that could not be made ready", () => {
  it.each([
    ["dedupes", dedupes],
    ["cancel", cancels],
    ["settles", settles],
    ["never", never],
  ])("is the operation's own error, with nothing kept (%s)", async (_form, recover) => {
    const one = world();
    await expect(charge({ ...one, options: { recover, headers: failing } })).rejects.toThrow("no token today");
    expect([arrived, await one.entries(), one.told]).toEqual([[], [], []]);
    expect((await charge({ ...one, options: { recover } })).kind).toBe("completed");
    expect(arrived).toHaveLength(1);
  });

  it("can be refused by the operation, since nothing was sent", async () => {
    const result = await charge({ ...world(), refuses: true, options: { headers: failing, recover: never } });
    expect(result).toMatchObject({ kind: "completed", outcome: { status: 502 } });
  });

  it("stays unknown where an earlier sending may have arrived, whatever the operation makes of it", async () => {
    const one = world();
    let sends = 0;
    const headers = () => (++sends > 1 ? failing() : {});
    script = [withoutAnswer];
    expect((await charge({ ...one, refuses: true, options: { headers } })).kind).toBe("unknown");
    one.passTime(60_000);
    expect((await charge({ ...one, refuses: true, options: { headers: failing } })).kind).toBe("unknown");
    expect(arrived).toHaveLength(1);
    one.passTime(60_000);
    expect((await charge({ ...one, options: { headers: () => ({}) } })).kind).toBe("completed");
    expect(new Set(arrived).size).toBe(1);
  });

  it("keeps the intent of an earlier sending", async () => {
    const one = world();
    script = [withoutAnswer];
    const headers = () => ({});
    expect((await charge({ ...one, options: { recover: settles, headers } })).kind).toBe("unknown");
    one.passTime(60_000);
    const options = { recover: settles, headers: failing };
    await expect(charge({ ...one, options })).rejects.toThrow("no token today");
    one.passTime(600_000);
    const finds: Form = { settlesWithinMs: 6_000, find: async () => ({ kind: "ambiguous", count: 2 }) };
    expect((await charge({ ...one, options: { recover: finds, headers } })).kind).toBe("unknown");
    expect(arrived).toHaveLength(1);
  });

  it("is given up at its time-out, with nothing sent", async () => {
    const one = world();
    const headers = () => new Promise<Record<string, string>>(() => {});
    await expect(charge({ ...one, options: { headers, timeoutMs: 20, recover: never } })).rejects.toThrow(/20 ms/);
    expect([arrived, await one.entries()]).toEqual([[], []]);
  });

  it.each([
    { "x-api-key": "sk_secret\nx" },
    { "content-length": "4" },
    new Headers({ "x-api-key": "sk_secret" }),
    { "x-api-key": 7 },
    null,
  ])("is refused without a word of what its function gave (%#)", async (given) => {
    const one = world();
    const options = { recover: never, headers: async () => given as never };
    const failure = await charge({ ...one, options }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "oncekey_config_invalid" });
    expect(String(failure) + String((failure as Error).cause)).not.toContain("secret");
    expect([arrived, await one.entries(), one.told]).toEqual([[], [], []]);
  });
});

describe("op.fetch from JavaScript", () => {
  it("never takes for an answer what no other side gave", async () => {
    for (const target of ["data:application/json,{}", "about:blank", "file:///", "ftp://127.0.0.1/"]) {
      await expect(charge({ ...world(), target })).rejects.toMatchObject({ code: "oncekey_config_invalid" });
    }
  });

  it.each<[string, object]>([
    ["headers that are no fields", { headers: new Headers({ authorization: "Bearer 1" }) }],
    ["a header that is no text", { headers: { authorization: undefined } }],
    ["a header that fetch refuses only later", { headers: { "Transfer-Encoding": "chunked" } }],
    ["a body that is no bytes", { json: undefined, body: new ArrayBuffer(3) }],
    ["a form as the body", { json: undefined, body: new URLSearchParams("a=1") }],
    ["a limit that is no number", { maxAnswerBytes: Number.NaN }],
    ["one status for a list", { unknownStatuses: 404 }],
    ["a verdict for a function", { isUnknown: true }],
  ])("refuses %s before anything is sent", async (_what, options) => {
    const one = world();
    await expect(charge({ ...one, options })).rejects.toMatchObject({ code: "oncekey_config_invalid" });
    expect([arrived, await one.entries()]).toEqual([[], []]);
  });

  it("says that a call without recover cannot be settled", async () => {
    const options = { recover: undefined as never };
    await expect(charge({ ...world(), options })).rejects.toMatchObject({ code: "oncekey_recover_missing" });
  });

  it("awaits what isUnknown promises", async () => {
    script = [(res) => void res.writeHead(422).end('{"errorCode":"704"}')];
    const isUnknown = async (answer: FetchAnswer) => answer.text().includes('"704"');
    const seen: number[] = [];
    await charge({ ...world(), options: { isUnknown }, after: ({ status }) => void seen.push(status) });
    expect(seen).toEqual([201]);
  });

  it("does not take what find found for an answer unless it is one", async () => {
    const one = world();
    script = [withoutAnswer];
    const find = async () => ({ kind: "found", value: { id: "auth_1" } }) as never;
    expect((await charge({ ...one, options: { recover: { find, settlesWithinMs: 6_000 } } })).kind).toBe("unknown");
    expect(one.told).toContainEqual(expect.objectContaining({ code: "oncekey_config_invalid" }));
  });
});
