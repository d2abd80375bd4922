import { describe, expect, it } from "vitest";
import { derivedUuid } from "../../src/core/intent.ts";
import { fromTransaction } from "../../src/core/opened-transaction.ts";
import { meaningOf, NOT_BEGUN_STATUSES } from "../../src/core/outcome-policy.ts";
import { happened, notDone } from "../../src/core/reconcile.ts";
import { ambiguous, formOf, found, none, unknown } from "../../src/core/recover.ts";
import { ok } from "../../src/core/response.ts";
import { checkScope } from "../../src/core/scope.ts";
import { StoreFailure, TransactionAbandoned } from "../../src/core/store.ts";

describe("what an answer of a captured handler means", () => {
  const meaning = (status: number, headers: [string, string][] = [], notBegun = NOT_BEGUN_STATUSES) =>
    meaningOf({ status, headers }, notBegun);

  it("is an outcome up to 499, and unknown from 500 on", () => {
    for (const status of [200, 201, 302, 399]) expect(meaning(status)).toBe("succeeded");
    for (const status of [400, 404, 409, 499]) expect(meaning(status)).toBe("failed");
    for (const status of [500, 502, 503, 599]) expect(meaning(status)).toBe("unknown");
  });

  it("is that nothing began where the status says so, or a 503 says when to come back", () => {
    for (const status of [401, 403, 408, 425, 429]) expect(meaning(status)).toBe("not_begun");
    expect(meaning(409, [], [409])).toBe("not_begun");
    expect(meaning(401, [], [409])).toBe("failed");
    const retryAfter: [string, string][] = [
      ["content-type", "text/plain"],
      ["Retry-After", "5"],
    ];
    expect(meaning(503, retryAfter)).toBe("not_begun");
    expect(meaning(500, retryAfter)).toBe("unknown");
    expect(meaning(201, retryAfter)).toBe("succeeded");
    expect(meaning(503, [["content-type", "text/plain"]])).toBe("unknown");
  });
});

describe("how a call is recovered", () => {
  const ask = async () => none();
  const cancel = async () => {};

  it("is told by what is given, and not by what is spelled out as undefined", () => {
    expect(formOf({ dedupes: { forMs: 1 }, find: ask })).toBe("dedupes");
    expect(formOf({ find: ask, cancel })).toBe("cancel");
    expect(formOf({ find: ask, settlesWithinMs: 1 })).toBe("settles");
    expect(formOf({ atMostOnce: true })).toBe("never");
    const spelled = { dedupes: undefined, cancel: undefined, atMostOnce: undefined, find: ask, settlesWithinMs: 1 };
    expect(formOf(spelled as never)).toBe("settles");
  });

  it("is answered by one of four words", () => {
    expect([found(7), none(), unknown("indexing"), ambiguous(2)]).toEqual([
      { kind: "found", value: 7 },
      { kind: "none" },
      { kind: "unknown", why: "indexing" },
      { kind: "ambiguous", count: 2 },
    ]);
  });
});

it("a captured run is told by two words, the one with its answer", () => {
  const answer = ok({ id: 7 });
  expect(happened(answer)).toEqual({ kind: "happened", response: answer });
  expect(notDone()).toEqual({ kind: "not_done" });
});

it("a transaction that the caller opened is handed on as it is", () => {
  const tx = { query: () => {} };
  expect(fromTransaction(tx).tx).toBe(tx);
});

it("a store's failure says which it is, and has a cause exactly where one was given", () => {
  const cause = new Error("reset");
  const failure = new StoreFailure("unavailable", "not reached", { cause });
  expect([failure.name, failure.kind, failure.message, failure.cause]).toEqual([
    ...["StoreFailure", "unavailable", "not reached", cause],
  ]);
  expect("cause" in new StoreFailure("timeout", "ended")).toBe(false);
  expect(new TransactionAbandoned("given up").name).toBe("TransactionAbandoned");
});

describe("a scope", () => {
  it("is taken where both parts are there, up to 255 characters each", () => {
    for (const client of [null, "", "app", "x".repeat(255)]) {
      expect(checkScope({ tenant: "t".repeat(255), client })).toEqual({ tenant: "t".repeat(255), client });
    }
  });

  it.each([
    ...[null, undefined, "acme", 7],
    ...[{}, { tenant: "acme" }, { client: null }, { tenant: "", client: null }, { tenant: 7, client: null }],
    ...[
      { tenant: ["acme"], client: null },
      { tenant: "acme", client: 7 },
      { tenant: "acme", client: undefined },
    ],
    ...[
      { tenant: "t".repeat(256), client: null },
      { tenant: "acme", client: "x".repeat(256) },
    ],
    ...[
      { tenant: "a\0", client: null },
      { tenant: "acme", client: "\ud800" },
    ],
  ])("is refused where it could mean somebody else: %j", (scope) => {
    expect(() => checkScope(scope)).toThrow(expect.objectContaining({ code: "oncekey_scope_invalid" }));
  });
});

it("a UUID of an entry depends on its seed and its name, and is of version 8", () => {
  const seed = new Uint8Array(16);
  const ids = [derivedUuid(seed, "a"), derivedUuid(seed, "b"), derivedUuid(seed.with(0, 1), "a")];
  expect(new Set(ids).size).toBe(3);
  expect(derivedUuid(new Uint8Array(16), "a")).toBe(ids[0]);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});
