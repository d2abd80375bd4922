import { describe, expect, it } from "vitest";
import { storingTurns } from "../../src/http/storing-turns.ts";

const LARGEST = 524_288;

/** Enters so many turns of the largest answers; gives who has got in, in order. */
function entered(count: number) {
  const turns = storingTurns();
  const inside: number[] = [];
  const all = Array.from({ length: count }, () => turns.turn());
  for (const [n, turn] of all.entries()) void turn.enter(64 * LARGEST).then(() => inside.push(n));
  return { turns, inside, leave: (n: number) => all[n]?.leave() };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("turns of storing", () => {
  it("are taken in order, as many as fit", async () => {
    const { inside, leave } = entered(40);
    await settled();
    expect(inside).toEqual(Array.from({ length: 32 }, (_, n) => n));
    leave(5);
    leave(5);
    leave(7);
    await settled();
    expect(inside.slice(32)).toEqual([32, 33]);
  });

  it("hold up nobody who leaves the queue, and lose no place by it", async () => {
    const { turns, inside, leave } = entered(34);
    await settled();
    leave(33);
    await settled();
    expect(inside.slice(32)).toEqual([33]);
    leave(0);
    await settled();
    expect(inside.slice(32)).toEqual([33, 32]);
    for (let n = 0; n < 34; n++) leave(n);
    const last = turns.turn();
    await last.enter(LARGEST);
    last.leave();
    turns.turn().leave();
  });
});
