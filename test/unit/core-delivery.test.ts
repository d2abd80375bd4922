import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { contentId, type Delivery, deliveryDigest, producerDigest, subjectDigest } from "../../src/core/delivery.ts";
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
});
