import assert from "node:assert/strict";
import type { StoredSubmission, SubmissionStorage } from "../client/index.ts";
import type { SuiteCase, SuiteHarness } from "./suite.ts";

/** What a storage of submissions brings to its contract suite: a medium of its own for each case, empty at first. */
export interface SubmissionStorageHarness extends SuiteHarness {
  /** A new handle on the medium, as another tab or process has one. */
  open(): Promise<SubmissionStorage>;
  /** The medium is full from now on (or takes nothing more for another reason): a body of 1 MiB does not fit any more. */
  fill(): Promise<void>;
  /** Spoils what is kept under that name, as a bad disk or somebody's editing would. */
  damage(name: string): Promise<void>;
}

/** A case of the submission storage suite. */
export type SubmissionStorageCase = SuiteCase<SubmissionStorageHarness>;

/** A submission as the client stores it, with members of one's own. */
export function storedSubmission(name: string, own: Partial<StoredSubmission> = {}): StoredSubmission {
  return {
    form: 1,
    name,
    key: "0b0e2f5c-6a53-4c6b-9d4e-5f2b1c7d8e9a",
    request: {
      method: "POST",
      url: "https://api.example/v1/charges",
      headers: [["content-type", "application/json"]],
      bodyBase64: "eyJhbW91bnQiOjV9",
      keyHeader: "Idempotency-Key",
    },
    createdAt: 1_767_225_600_000,
    firstSentAt: null,
    attempts: 0,
    spentMs: 0,
    spentAt: 1_767_225_600_000,
    retentionMs: null,
    settled: null,
    ...own,
  };
}

/** One whose body has so many bytes: pseudo-random ones, so that no medium can pack them. */
export function largeSubmission(name: string, bytes: number): StoredSubmission {
  const body = new Uint8Array(bytes);
  for (let at = 0, state = 1; at < bytes; at++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    body[at] = state >>> 16;
  }
  const letters: string[] = [];
  for (let at = 0; at < bytes; at += 3_000) letters.push(btoa(String.fromCharCode(...body.subarray(at, at + 3_000))));
  return storedSubmission(name, { request: { ...storedSubmission(name).request, bodyBase64: letters.join("") } });
}

/** Names that a medium might mistake for something else. */
export const STRANGE_NAMES: readonly string[] = [
  ...["", " ", "cart-1", "CART-1", "Größe ☃ 💶", "支払い", "a/b", "../../etc/passwd", "a\\b", "a\u0000b", "a\nb"],
  ...["__proto__", "constructor", "length", "null", "-", "%2e%2e", ".lock", "lease", "x".repeat(2_000)],
  // A lone surrogate and what UTF-8 makes of it; one character in two forms.
  ...["\ud800", "\ufffd", "\u00e9", "e\u0301"],
];

/** A promise that is settled by hand. */
export function byHand(): { readonly promise: Promise<void>; open(): void } {
  let open = () => {};
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open: () => open() };
}

/** Starts a holder on a handle; resolves when it is inside, with what ends it. */
export async function hold(storage: SubmissionStorage, name: string): Promise<() => Promise<void>> {
  const [inside, end] = [byHand(), byHand()];
  const held = storage.exclusively(name, async () => {
    inside.open();
    await end.promise;
  });
  await Promise.race([inside.promise, held]);
  return async () => {
    end.open();
    await held;
  };
}

/** What is kept, by name and in the order of names. */
export async function assertKeeps(storage: SubmissionStorage, expected: readonly StoredSubmission[]): Promise<void> {
  const byName = (one: StoredSubmission, other: StoredSubmission) => (one.name < other.name ? -1 : 1);
  assert.deepEqual([...(await storage.list())].sort(byName), [...expected].sort(byName));
  for (const one of expected) assert.deepEqual(await storage.get(one.name), one);
}
