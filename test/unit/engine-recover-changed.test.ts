import type { Recover } from "oncekey";
import { describe, expect, it } from "vitest";
import { chargesWorld } from "../support/charges.ts";
import { type Provider, provider } from "../support/provider.ts";

type Form = (psp: Provider) => Recover<{ amount: number }, { id: string }>;

const dedupes: Form = () => ({ dedupes: { forMs: 3_600_000 } });
const cancels: Form = ({ find, cancel }) => ({ find: ({ key }) => find(key), cancel: ({ key }) => cancel(key) });
const settles: Form = ({ find }) => ({ find: ({ key }) => find(key), settlesWithinMs: 2_000 });
const never: Form = () => ({ atMostOnce: true });

/** Lets the old code's call land, kills the old process before it hears of it, and gives the entry to the new code, of another version. */
async function effects(before: Form, after: Form, dedupesThere: boolean): Promise<number> {
  const psp = provider({ dedupes: dedupesThere });
  const { worker, time } = chargesWorld({ psp, timeoutMs: 500 });
  let sends = 0;
  // Only the first send leaves the old process: it dies with it.
  const at = (place: string) => (place === "sending" && ++sends > 1 ? new Promise<void>(() => {}) : undefined);
  const old = await worker({ recover: before, at });
  const { call } = psp;
  psp.call = async (key) => {
    await call(key);
    // Dead: it renews no lease and writes nothing any more.
    const { store } = old.once.internals.context;
    for (const method of ["renew", "recordCall", "suspend", "release", "markUnknown", "openIntent"] as const) {
      Object.defineProperty(store, method, { value: () => new Promise(() => {}) });
    }
    return new Promise(() => {});
  };
  void old.run("k").catch(() => {});
  await time.advance(50);
  psp.call = call;
  expect(psp.landed).toHaveLength(1);
  await time.advance(700_000);
  const next = await worker({ recover: after, version: 2 });
  for (let retry = 0; retry < 5; retry++) {
    await time.advanceUntil(next.run("k").catch(() => {}));
    await time.advance(60_000);
  }
  return psp.landed.length;
}

describe("a call whose way of recovery changed in a deploy while it was open", () => {
  const changes: [string, Form, Form, boolean][] = [
    ["dedupes to find and cancel", dedupes, cancels, false],
    ["dedupes to find and settle", dedupes, settles, false],
    ["dedupes to at most once", dedupes, never, false],
    ["at most once to dedupes", never, dedupes, false],
    ["find and settle to dedupes", settles, dedupes, false],
  ];
  for (const [what, before, after, dedupesThere] of changes) {
    it(`is not carried out twice: ${what}`, async () => {
      expect(await effects(before, after, dedupesThere)).toBe(1);
    });
  }
});
