import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SequenceNumber } from "../../src/core/sequence.ts";
import {
  decideBatch,
  HIGHEST_SEQUENCE,
  type NumberedSpan,
  REMEMBERED_BATCHES,
  type SequenceSpan,
} from "../../src/core/sequence-batch.ts";

const batch = (first: bigint, count = 1n, epoch = 0n): NumberedSpan => ({ epoch, first, count });
const at = (sequence: bigint, epoch = 0n): SequenceNumber => ({ epoch, sequence });

describe("a producer's batch", () => {
  it("is accepted where it is the next one, and moves on by its length", () => {
    const accepted = decideBatch(null, [], batch(0n, 3n));
    expect(accepted).toEqual({ kind: "accept", span: { first: 0n, last: 2n }, to: at(2n) });
    expect(decideBatch(at(2n), [], batch(3n, 2n))).toMatchObject({ kind: "accept", to: at(4n) });
  });

  it("is a duplicate where both of its ends are those of one that is remembered, and only then", () => {
    const remembered: SequenceSpan[] = [
      { first: 0n, last: 2n },
      { first: 3n, last: 4n },
    ];
    expect(decideBatch(at(4n), remembered, batch(0n, 3n))).toEqual({ kind: "duplicate", place: 0 });
    expect(decideBatch(at(4n), remembered, batch(3n, 2n))).toEqual({ kind: "duplicate", place: 1 });
    for (const overlap of [batch(0n, 2n), batch(0n, 5n), batch(1n, 2n), batch(3n, 3n), batch(4n, 1n)]) {
      expect(decideBatch(at(4n), remembered, overlap)).toEqual({ kind: "out_of_order", expected: 5n });
    }
  });

  it("after a gap, or older than what is remembered, is out of order", () => {
    expect(decideBatch(at(9n), [], batch(11n))).toEqual({ kind: "out_of_order", expected: 10n });
    expect(decideBatch(at(9n), [{ first: 9n, last: 9n }], batch(3n))).toEqual({ kind: "out_of_order", expected: 10n });
  });

  it("of a producer that nobody knows is its first one or an error", () => {
    expect(decideBatch(null, [], batch(5n))).toEqual({ kind: "unknown_producer" });
    expect(decideBatch(null, [], batch(0n, 1n, 7n))).toMatchObject({ kind: "accept", to: at(0n, 7n) });
  });

  it("of a newer epoch begins at 0, and one of an older epoch is fenced whatever its numbers", () => {
    const remembered = [{ first: 4n, last: 5n }];
    expect(decideBatch(at(5n, 1n), remembered, batch(0n, 1n, 2n))).toMatchObject({ kind: "accept", to: at(0n, 2n) });
    expect(decideBatch(at(5n, 1n), remembered, batch(6n, 1n, 2n))).toEqual({ kind: "out_of_order", expected: 0n });
    expect(decideBatch(at(5n, 1n), remembered, batch(4n, 2n, 2n))).toEqual({ kind: "out_of_order", expected: 0n });
    for (const first of [0n, 4n, 6n]) {
      expect(decideBatch(at(5n, 1n), remembered, batch(first, 2n, 0n))).toEqual({ kind: "fenced", epoch: 1n });
    }
  });

  it("goes on at 0 after 2^31 - 1, also within itself", () => {
    const end = HIGHEST_SEQUENCE;
    expect(decideBatch(at(end), [], batch(0n))).toMatchObject({ kind: "accept", to: at(end + 1n) });
    const across = decideBatch(at(end - 2n), [], batch(end - 1n, 4n));
    expect(across).toEqual({ kind: "accept", span: { first: end - 1n, last: 1n }, to: at(end + 2n) });
    expect(decideBatch(at(end + 2n), [{ first: end - 1n, last: 1n }], batch(end - 1n, 4n))).toMatchObject({
      kind: "duplicate",
    });
    expect(decideBatch(at(end + 2n), [], batch(2n))).toMatchObject({ kind: "accept", to: at(end + 3n) });
    expect(decideBatch(at(end + 2n), [], batch(3n))).toEqual({ kind: "out_of_order", expected: 2n });
  });
});

/** A broker on the rule, as the engine is one. */
function broker() {
  let last: SequenceNumber | null = null;
  let remembered: readonly SequenceSpan[] = [];
  const appended: NumberedSpan[] = [];
  return {
    appended,
    send(sent: NumberedSpan) {
      const decision = decideBatch(last, remembered, sent);
      if (decision.kind !== "accept") return decision.kind;
      remembered = [...(last?.epoch === sent.epoch ? remembered : []), decision.span].slice(-REMEMBERED_BATCHES);
      last = decision.to;
      appended.push(sent);
      return decision.kind;
    },
  };
}

describe("a broker on these rules", () => {
  it("appends each message once and in order, whatever comes how often in which order", () => {
    const any = fc.record({
      epoch: fc.bigInt({ min: 0n, max: 2n }),
      first: fc.bigInt({ min: 0n, max: 12n }),
      count: fc.bigInt({ min: 1n, max: 3n }),
    });
    fc.assert(
      fc.property(fc.array(any, { maxLength: 80 }), (stream) => {
        const { send, appended } = broker();
        for (const sent of stream) send(sent);
        for (const [index, { epoch, first }] of appended.entries()) {
          const before = appended[index - 1];
          const isNext = before?.epoch === epoch && first === before.first + before.count;
          assert.ok(isNext || (first === 0n && (before === undefined || epoch > before.epoch)));
        }
      }),
    );
  });

  it("knows a producer's last five batches, and refuses what is older", () => {
    const { send } = broker();
    const sent = Array.from({ length: 7 }, (_, index) => batch(BigInt(index) * 2n, 2n));
    for (const one of sent) assert.equal(send(one), "accept");
    const again = sent.map(send);
    expect(again).toEqual(["out_of_order", "out_of_order", ...Array(5).fill("duplicate")]);
  });
});
