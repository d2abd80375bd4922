import { created, createOncekey } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { beforeEach, expect, it, vi } from "vitest";
import * as canonical from "../../src/core/json/canonical.ts";
import * as parse from "../../src/core/json/parse.ts";
import * as plain from "../../src/core/json/plain.ts";
import type { Exchange } from "../../src/http/exchange.ts";
import { bind } from "../../src/http/gate.ts";
import { gate as openable } from "../support/gate.ts";

vi.mock("../../src/core/json/canonical.ts", { spy: true });
vi.mock("../../src/core/json/parse.ts", { spy: true });
vi.mock("../../src/core/json/plain.ts", { spy: true });

beforeEach(() => void vi.clearAllMocks());

/** How often a canonical form was written, and how often a body was read. */
const calls = () => ({
  written: [canonical.canonicalText, plain.canonicalPlain].reduce(
    (sum, one) => sum + vi.mocked(one).mock.calls.length,
    0,
  ),
  read: vi.mocked(plain.plainJson).mock.calls.length,
  readExactly: vi.mocked(parse.parseJson).mock.calls.length,
});

async function orders(running: Promise<void> = Promise.resolve()) {
  const once = createOncekey({ store: memoryStore(), maxWaiters: 1_000, maxWaitersPerKey: 1_000 });
  const operation = once.transaction({
    name: "orders.create",
    version: 1,
    run: async () => {
      await running;
      return created("/v1/orders/1", {});
    },
  });
  await once.start();
  return bind<null>(operation, { scope: () => ({ tenant: "acme", client: null }) });
}

function exchange(text: string): Exchange<null> {
  const headers: Record<string, string[]> = { "idempotency-key": ["k"], "content-type": ["application/json"] };
  return {
    native: null,
    method: "POST",
    target: "/v1/orders",
    params: {},
    headerLines: (name) => headers[name] ?? [],
    readBody: async () => ({ kind: "bytes", bytes: Buffer.from(text) }),
  };
}

const replayed = ({ headers }: { readonly headers: readonly (readonly [string, string])[] }) =>
  headers.some(([name]) => name === "idempotent-replayed");

// The second text has to be read exactly: an escape.
it.each(['{"b":1,"a":2}', '{"b":1.0,"a":"\\u00e9"}'])(
  "a byte-equal retry writes no canonical form: %s",
  async (text) => {
    const gate = await orders();
    expect(replayed(await gate.answer(exchange(text)))).toBe(false);
    expect(calls().written).toBe(1);
    vi.clearAllMocks();
    for (let retry = 0; retry < 5; retry++) expect(replayed(await gate.answer(exchange(text)))).toBe(true);
    expect(calls().written).toBe(0);
    // Read it is, each time: what cannot be read is refused before anything is looked up.
    expect(calls().read).toBe(5);
    // Spelled in another way it has to be compared by what it says.
    expect(replayed(await gate.answer(exchange(` ${text}`)))).toBe(true);
    expect(calls().written).toBe(1);
  },
);

it("byte-equal duplicates of a running request are not even parsed, and another body with its key is", async () => {
  const finish = openable();
  const gate = await orders(finish.promise);
  const text = '{"b":1,"a":2}';
  const answers = Array.from({ length: 50 }, () => gate.answer(exchange(text)));
  const other = await gate.answer(exchange('{"b":1,"a":3}'));
  expect(other.status).toBe(422);
  expect(calls()).toEqual({ written: 2, read: 2, readExactly: 0 });
  finish.open();
  expect((await Promise.all(answers)).filter(replayed)).toHaveLength(49);
  expect(calls()).toEqual({ written: 2, read: 2, readExactly: 0 });
  // Nothing is lent any more.
  await gate.answer(exchange(text));
  expect(calls()).toEqual({ written: 2, read: 3, readExactly: 0 });
});

it("a body that cannot be read is refused although the key is known, and spoils nothing for others", async () => {
  const finish = openable();
  const gate = await orders(finish.promise);
  const first = gate.answer(exchange('{"a":1}'));
  expect((await gate.answer(exchange('{"a":1,"a":1}'))).status).toBe(400);
  finish.open();
  expect((await first).status).toBe(201);
  expect((await gate.answer(exchange('{"a":1'))).status).toBe(400);
});
