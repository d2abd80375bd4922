import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  authorship,
  checkDelivery,
  checkNumbered,
  checkNumberedBatch,
  checkSubject,
  contentId,
  type Delivery,
  deliveryDigest,
  isAuthorship,
  producerDigest,
  subjectDigest,
} from "../../src/core/delivery.ts";
import { identityOf, type KeySpace } from "../../src/core/identity.ts";

const hex = (digest: Uint8Array) => Buffer.from(digest).toString("hex");
const digestOf = (delivery: Delivery) => hex(deliveryDigest(delivery));

const delivery: Delivery = { tenant: "acme", source: "stripe", id: "evt_1" };

describe("the digests of arrivals", () => {
  it("are frozen: computed once by other code", () => {
    expect(digestOf(delivery)).toBe("4a4e6df8d9f839a4fc018fc662d9a343ea3ff57a69d8f130dac6fa17c773b6b3");
    expect(digestOf({ tenant: "acme", source: "fix", id: "ord_1", period: "2026-01-05" })).toBe(
      "5322ed856bf947cfaa4db072473a354abbd3738249bce8178af2153d8bf24885",
    );
    expect(hex(producerDigest({ tenant: "acme", source: "meter", producer: "edge-7" }))).toBe(
      "3d64833cae475a7597181580d7d1233df2643a518cae5bdfd59e215288ef0119",
    );
    expect(hex(subjectDigest({ tenant: "acme", source: "stripe", subject: "sub_1" }))).toBe(
      "11ca29669e6e490e3a6e1fb3286bae750490e25a9f98c164f6fb9548cd94639f",
    );
  });

  it("differ for every part: tenant, source, id and period", () => {
    const others: Delivery[] = [
      { ...delivery, tenant: "globex" },
      { ...delivery, source: "github" },
      { ...delivery, id: "evt_2" },
      { ...delivery, period: "" },
      { ...delivery, period: "2026-01-05" },
    ];
    const digests = [delivery, ...others].map(digestOf);
    expect(new Set(digests).size).toBe(digests.length);
  });

  it("never meet, wherever one part ends and the next begins", () => {
    const part = fc.string({ unit: fc.constantFrom("a", "b", "\u0000", "é"), maxLength: 3 });
    const any = fc.record(
      { tenant: part, source: part, id: part, period: part },
      { requiredKeys: ["tenant", "source", "id"] },
    );
    const text = ({ tenant, source, id, period }: Delivery) => JSON.stringify([tenant, source, id, period ?? null]);
    fc.assert(
      fc.property(any, any, (a, b) => assert.equal(digestOf(a) === digestOf(b), text(a) === text(b))),
      { numRuns: 2_000 },
    );
  });

  it("of a delivery, a producer and a subject with the same parts are three", () => {
    const [tenant, source, name] = ["acme", "s", "x"];
    const digests = [
      deliveryDigest({ tenant, source, id: name }),
      producerDigest({ tenant, source, producer: name }),
      subjectDigest({ tenant, source, subject: name }),
    ].map(hex);
    expect(new Set(digests).size).toBe(3);
  });

  it("are no identity of a request, whatever its parts: all of them name locks", () => {
    const parts = ["delivery", "producer", "subject", "acme", "s", "x"];
    const arrived = new Set([
      hex(deliveryDigest({ tenant: "acme", source: "s", id: "x" })),
      hex(producerDigest({ tenant: "acme", source: "s", producer: "x" })),
      hex(subjectDigest({ tenant: "acme", source: "s", subject: "x" })),
    ]);
    const keySpaces: readonly KeySpace[] = ["operation", "account"];
    const all = parts.flatMap((tenant) =>
      [...parts, null].flatMap((client) =>
        parts.flatMap((operation) =>
          parts.flatMap((key) =>
            keySpaces.map((keySpace) => identityOf({ tenant, client }, operation, key, { keySpace })),
          ),
        ),
      ),
    );
    expect(all).toHaveLength(3_024);
    expect(all.filter(({ id }) => arrived.has(hex(id)))).toEqual([]);
  });

  it("change with each part of a producer and of a subject", () => {
    const producers = [
      { tenant: "acme", source: "s", producer: "p" },
      { tenant: "globex", source: "s", producer: "p" },
      { tenant: "acme", source: "t", producer: "p" },
      { tenant: "acme", source: "s", producer: "q" },
    ];
    expect(new Set(producers.map((one) => hex(producerDigest(one)))).size).toBe(4);
    const subjects = producers.map(({ producer, ...rest }) => ({ ...rest, subject: producer }));
    expect(new Set(subjects.map((one) => hex(subjectDigest(one)))).size).toBe(4);
  });
});

describe("an id made from the content", () => {
  it("is SHA-256 of the body in hex, of text and bytes alike", () => {
    const body = '{"a":1}';
    expect(contentId(body)).toBe("015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862");
    expect(contentId(new TextEncoder().encode(body))).toBe(contentId(body));
    expect(contentId('{"a": 1}')).not.toBe(contentId(body));
  });

  it("is refused for text that UTF-8 cannot spell: two bodies would have one id", () => {
    for (const text of ["\ud800", "a\udc00b"]) expect(() => contentId(text)).toThrow(refusedWith("a lone surrogate"));
  });
});

const refusedWith = (message: string) =>
  expect.objectContaining({ code: "oncekey_delivery_invalid", message: expect.stringContaining(message) });

/** Values that are no part of a delivery, with what is said of each. */
const wrongParts = (name: string, most: number) =>
  [
    ...["", undefined, null, 7, ["a"], "a".repeat(most + 1)].map((part) => [
      part,
      `${name} must be text of 1 to ${most}`,
    ]),
    ...["a\0", "\0", "\ud800"].map((part) => [part, `${name} must be well-formed text without NUL`]),
  ] as [never, string][];

describe("a delivery", () => {
  it("is taken with all of its parts, and without what else was given", () => {
    const full = { ...delivery, period: "2026-01-05" };
    expect(checkDelivery({ ...full, more: 1 } as Delivery)).toEqual(full);
    expect(Object.keys(checkDelivery({ ...delivery, period: undefined } as never))).toEqual(["tenant", "source", "id"]);
    const longest = { tenant: "t".repeat(255), source: "s".repeat(255), id: "i".repeat(512), period: "p".repeat(255) };
    expect(checkDelivery(longest)).toEqual(longest);
  });

  it("is refused where a part could be taken for another, or not be stored", () => {
    const mosts = { tenant: 255, source: 255, id: 512, period: 255 };
    for (const [name, most] of Object.entries(mosts)) {
      for (const [part, message] of wrongParts(name, most)) {
        if (name === "period" && part === undefined) continue;
        expect(() => checkDelivery({ ...delivery, [name]: part }), `${name} ${part}`).toThrow(refusedWith(message));
      }
    }
  });
});

describe("a numbered message", () => {
  const numbered = { tenant: "acme", source: "meter", producer: "edge-7", epoch: 0n, sequence: 0n };
  const MOST = 2n ** 63n - 1n;

  it("is taken with numbers from 0 to what their column holds", () => {
    expect(checkNumbered({ ...numbered, more: 1 } as never)).toEqual(numbered);
    const highest = { ...numbered, epoch: MOST, sequence: MOST };
    expect(checkNumbered(highest)).toEqual(highest);
    for (const name of ["epoch", "sequence"]) {
      for (const wrong of [-1n, MOST + 1n, 1, "1", undefined]) {
        expect(() => checkNumbered({ ...numbered, [name]: wrong }), `${name} ${wrong}`).toThrow(
          refusedWith("epoch and sequence are bigints from 0 to"),
        );
      }
    }
    for (const name of ["tenant", "source", "producer"]) {
      for (const [part, message] of wrongParts(name, 255)) {
        expect(() => checkNumbered({ ...numbered, [name]: part })).toThrow(refusedWith(message));
      }
    }
  });

  it("comes in batches of which the first number and the length are known", () => {
    const { sequence: _, ...producer } = numbered;
    const batch = { ...producer, first: 0n, count: 1n };
    expect(checkNumberedBatch({ ...batch, more: 1 } as never)).toEqual(batch);
    const longest = { ...batch, first: 2n ** 31n - 1n, count: 100_000_000n };
    expect(checkNumberedBatch(longest)).toEqual(longest);
    expect(() => checkNumberedBatch({ ...batch, first: 2n ** 31n })).toThrow(refusedWith("at most 2^31 - 1"));
    for (const first of [-1n, 1, undefined]) {
      expect(() => checkNumberedBatch({ ...batch, first: first as bigint })).toThrow(refusedWith("are bigints from 0"));
    }
    for (const count of [0n, -1n, 100_000_001n, 1, undefined]) {
      expect(() => checkNumberedBatch({ ...batch, count: count as bigint })).toThrow(
        refusedWith("count is a bigint from 1 to 100000000"),
      );
    }
    expect(() => checkNumberedBatch({ ...batch, producer: "" })).toThrow(refusedWith("producer must be"));
  });
});

describe("a subject", () => {
  const subject = { tenant: "acme", source: "stripe", subject: "sub_1" };
  const MOST = 2n ** 63n - 1n;

  it("moves to a version: a whole number, or a date by its milliseconds", () => {
    expect(checkSubject(subject, 7)).toEqual({ subject, version: 7n });
    expect(checkSubject(subject, -7n)).toEqual({ subject, version: -7n });
    expect(checkSubject(subject, new Date(1_234))).toEqual({ subject, version: 1_234n });
    for (const version of [MOST, -MOST]) expect(checkSubject(subject, version).version).toBe(version);
  });

  it("is refused where its name is none, or its version does not fit its column", () => {
    for (const [part, message] of wrongParts("subject", 255)) {
      expect(() => checkSubject({ ...subject, subject: part }, 1)).toThrow(refusedWith(message));
    }
    const wrong = [MOST + 1n, -MOST - 1n, 0.5, 2 ** 53, Number.NaN, new Date(Number.NaN), "1", undefined];
    for (const version of wrong) {
      expect(() => checkSubject(subject, version as number), String(version)).toThrow(refusedWith("a version is"));
    }
  });
});

it("a mark of authorship is told from what a handler gave: its first byte is no version of the value codec", () => {
  const mark = authorship(Uint8Array.of(9, 8));
  expect([...mark]).toEqual([0, 9, 8]);
  expect(isAuthorship(mark)).toBe(true);
  expect(isAuthorship(Uint8Array.of(1, 9, 8))).toBe(false);
  expect(isAuthorship(new Uint8Array())).toBe(false);
});
