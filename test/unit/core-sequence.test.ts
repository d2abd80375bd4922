import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decideSequence, type SequenceNumber } from "../../src/core/sequence.ts";

const at = (epoch: bigint, sequence: bigint): SequenceNumber => ({ epoch, sequence });

describe("the number of a producer's message", () => {
  it("is accepted where it is the next one", () => {
    expect(decideSequence(null, at(0n, 0n))).toEqual({ kind: "accept" });
    expect(decideSequence(at(0n, 0n), at(0n, 1n))).toEqual({ kind: "accept" });
    expect(decideSequence(at(3n, 2n ** 53n), at(3n, 2n ** 53n + 1n))).toEqual({ kind: "accept" });
  });

  it("that was seen before is a duplicate, however long ago", () => {
    for (const sequence of [0n, 4n, 5n]) {
      expect(decideSequence(at(1n, 5n), at(1n, sequence))).toEqual({ kind: "duplicate" });
    }
  });

  it("after a gap is out of order, and the expected one is told", () => {
    expect(decideSequence(null, at(0n, 1n))).toEqual({ kind: "out_of_order", expected: 0n });
    expect(decideSequence(at(0n, 5n), at(0n, 7n))).toEqual({ kind: "out_of_order", expected: 6n });
  });

  it("of a new epoch begins at 0: a message lost between two instances is a gap, not silence", () => {
    expect(decideSequence(null, at(4n, 0n))).toEqual({ kind: "accept" });
    expect(decideSequence(at(1n, 5n), at(2n, 0n))).toEqual({ kind: "accept" });
    expect(decideSequence(at(1n, 5n), at(2n, 6n))).toEqual({ kind: "out_of_order", expected: 0n });
  });

  it("of an older epoch is fenced, even one that was never seen", () => {
    for (const sequence of [0n, 5n, 6n]) {
      expect(decideSequence(at(2n, 5n), at(1n, sequence))).toEqual({ kind: "fenced", epoch: 2n });
    }
  });

  it("lets any stream of messages through as 0, 1, 2 … of growing epochs, each once", () => {
    const number = fc.tuple(fc.bigInt({ min: 0n, max: 2n }), fc.bigInt({ min: 0n, max: 5n }));
    fc.assert(
      fc.property(fc.array(number, { maxLength: 60 }), (stream) => {
        let last: SequenceNumber | null = null;
        const accepted: SequenceNumber[] = [];
        for (const [epoch, sequence] of stream) {
          const next = at(epoch, sequence);
          if (decideSequence(last, next).kind !== "accept") continue;
          accepted.push(next);
          last = next;
        }
        for (const epoch of [0n, 1n, 2n]) {
          const sequences = accepted.filter((one) => one.epoch === epoch).map((one) => one.sequence);
          assert.deepEqual(
            sequences,
            sequences.map((_, index) => BigInt(index)),
          );
        }
        const epochs = accepted.map((one) => one.epoch);
        assert.deepEqual(
          epochs,
          epochs.toSorted((a, b) => Number(a - b)),
        );
      }),
      { numRuns: 2_000 },
    );
  });

  it("accepts all of a stream that is redelivered as often as it likes, as long as nothing overtakes", () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 4 }), { maxLength: 30 }), (backwards) => {
        let last: SequenceNumber | null = null;
        let accepts = 0n;
        for (const [index, back] of backwards.entries()) {
          // The next one, after some earlier ones that come again.
          for (let sequence = Math.max(0, index - back); sequence <= index; sequence += 1) {
            const decision = decideSequence(last, at(0n, BigInt(sequence)));
            assert.equal(decision.kind, BigInt(sequence) === accepts ? "accept" : "duplicate");
            if (decision.kind !== "accept") continue;
            accepts += 1n;
            last = at(0n, BigInt(sequence));
          }
        }
        assert.equal(accepts, BigInt(backwards.length));
      }),
    );
  });
});
