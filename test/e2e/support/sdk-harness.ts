import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { Effects, SdkWorld } from "./sdk-cases.ts";
import type { SdkAnswer, SdkAttempt } from "./sdk-proxy.ts";
import type { RowOfRun } from "./sdk-rows.ts";

// What the cases of sdk-suite.ts have to know of an SDK, and what they expect of its calls.

/** A call as it went over the wire. */
export interface SdkCall {
  /** The requests that the SDK made of it, in order; the last one's answer is what the caller got. */
  readonly attempts: readonly SdkAttempt[];
  /** Whether that answer is the replay of an earlier one. */
  readonly replayed: boolean;
}

/** How an SDK is called, what its calls look like on the wire, and what its caller gets in each case. */
export interface SdkHarness<Given = unknown> {
  /** Who calls, where a file has several callers. */
  readonly name?: string;
  world(): SdkWorld;
  /** One call with that key and content; `null`: the SDK makes a key of its own. */
  pay(key: string | null, content: "a" | "b"): Promise<Given>;
  /** The keys that the SDK makes of its own. Without: the caller has to give one. */
  readonly minted?: RegExp;
  /** The key in a request that the SDK sent. */
  keyOf(attempt: SdkAttempt): unknown;
  /** What one call with content `a` does once. */
  readonly effects: Effects;
  /** Expects of a successful call with content `a` what the vendor promises. */
  accepted(given: Given, call: SdkCall): void;
  /** What a replay gives as the first call gave it. Without: everything. */
  shown?(given: Given): unknown;
  /** What the SDK shows as the request's own id, of which a replay has a new one. */
  requestIdOf?(given: Given): unknown;
  /** What a replayed body has in common with the first one. Without: every byte. */
  kept?(body: string): string;
  record(row: RowOfRun): void;
  /** The cases that this caller goes through. */
  readonly rows: Readonly<Partial<SdkRows<Given>>>;
}

/** What the caller gets, in the words of the table. */
export interface Row {
  readonly result: string;
  readonly variant?: string;
}

/** The caller gets an error. */
export interface Failing extends Row {
  /** Expects the vendor's own class and fields. */
  error(error: unknown, told: { readonly key: string | null; readonly attempts: readonly SdkAttempt[] }): void;
  /** How many requests the SDK makes before it gives up; 1 without. */
  readonly requests?: number;
}

/** Each case, with what sets one SDK apart from another. */
export interface SdkRows<Given = unknown> {
  readonly first: Row;
  /** `error`: the SDK sends nothing again by itself; its caller does. */
  readonly cut_before: Row | Failing;
  readonly cut_after: Row | Failing;
  readonly same_key: Row;
  /** `taken`: nothing is compared, and the caller is given the first call's result. */
  readonly other_content: Failing | (Row & { taken(given: Given, first: Given): void });
  readonly duplicate: Row;
  /** `told`: expects of the answer after which the SDK comes back by itself. `pay`: by a client that gives up sooner. */
  readonly duplicate_long:
    | (Failing & { pay?(key: string): Promise<unknown> })
    | (Row & { told(answer: SdkAnswer): void });
  readonly store_down: Failing;
}

/** What a charge does. */
export const A_CHARGE: Effects = { invoices: 0, charges: 1, refunds: 0, authorizations: 1, captures: 1 };
/** What an invoice does. */
export const AN_INVOICE: Effects = { invoices: 1, charges: 0, refunds: 0, authorizations: 0, captures: 0 };

/** What a call does that is refused, or answered from what is kept. */
export const NOTHING: Effects = { invoices: 0, charges: 0, refunds: 0, authorizations: 0, captures: 0 };

/** A key for a case; `null` where the SDK makes one. */
export function newKey({ minted }: SdkHarness): string | null {
  return minted === undefined ? randomUUID() : null;
}

/** Every request carries that key; all but those with other content, the same bytes. */
export function expectOneRequest(
  { keyOf, minted }: SdkHarness,
  attempts: readonly SdkAttempt[],
  key: string | null,
): void {
  const [first] = attempts;
  if (first === undefined) throw new Error("Nothing was sent.");
  expect(keyOf(first)).toEqual(key ?? expect.stringMatching(minted ?? /./));
  for (const attempt of attempts) expect([attempt.body, keyOf(attempt)]).toEqual([first.body, keyOf(first)]);
}

/** Two calls gave the same: the second one is the first one's replay, after whatever it was told in between. */
export function expectSame(
  harness: SdkHarness,
  given: readonly [first: unknown, second: unknown],
  [first, second]: readonly [first: readonly SdkAttempt[], second: readonly SdkAttempt[]],
): void {
  const { shown = (all: unknown) => all } = harness;
  harness.accepted(given[0], { attempts: first, replayed: false });
  harness.accepted(given[1], { attempts: second, replayed: true });
  expect(shown(given[1])).toEqual(shown(given[0]));
  const kept = (attempt: SdkAttempt) => keptOf(harness, attempt);
  expect(second.slice(-first.length).map(kept)).toEqual(first.map(kept));
}

/** What a replay of that answer must have too; `null` where there was none. */
export function keptOf({ kept = (body: string) => body }: SdkHarness, attempt: SdkAttempt | undefined): string | null {
  const body = attempt?.answer?.body;
  return body === undefined ? null : kept(body);
}

/** Takes the row down that a case came to. */
export function record(
  harness: SdkHarness,
  name: RowOfRun["case"],
  { variant, result }: Row,
  { attempts, executions }: { readonly attempts: readonly SdkAttempt[]; readonly executions: number },
): void {
  const what = variant === undefined ? { case: name } : { case: name, variant };
  harness.record({ ...what, attempts: attempts.length, executions, result });
}
