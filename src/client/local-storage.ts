import type { Lease, LeaseMedium } from "./lease.ts";
import { inTurn, nextNumber } from "./local-storage-turns.ts";
import type { SubmissionStorage } from "./storage.ts";
import { parsed, parseStored } from "./stored-form.ts";
import type { StoredSubmission } from "./submission.ts";
import { sleep } from "./waiting.ts";
import { underWebLock } from "./web-lock.ts";

/** The part of the browser's `Storage` that is used. */
interface WebStorage {
  readonly length: number;
  key(index: number): string | null;
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** A submission as its text holds it: with the number of its write. */
type Numbered = StoredSubmission & { readonly turn?: number };

const SETTLE_MS = 50;

/**
 * Keeps submissions in the browser's localStorage, shared by the tabs of an origin: JSON text under prefix and name. A
 * quota error is raised as it is (5 MiB for all of an origin's items). `indexedDbStorage()` is the better choice where it can
 * be had: localStorage reaches the disk some seconds later, so that a submission survives the end of its page, but may be
 * lost with the whole browser; and a tab that dies in the moment after it wrote may leave another one with what was before.
 */
export function localStorageStorage(prefix = "oncekey:"): SubmissionStorage {
  const read = (name: string) => {
    const text = medium().getItem(prefix + name);
    if (text === null) return null;
    const { turn: _, ...stored } = parseStored(text, name, "localStorage") as Numbered;
    return stored;
  };
  return {
    name: "localStorage",
    get: async (name) => read(name),
    async put(submission) {
      const turn = nextNumber(numberOf(prefix + submission.name));
      medium().setItem(prefix + submission.name, JSON.stringify({ ...submission, turn }));
    },
    list: async () =>
      keysOf(medium()).flatMap((key) => (key.startsWith(prefix) ? readable(read, key.slice(prefix.length)) : [])),
    async remove(name) {
      medium().removeItem(prefix + name);
    },
    exclusively(name, run, signal) {
      const lock = `oncekey ${prefix}${name}`;
      return underWebLock(lock, leases, () => inTurn(lock, () => numberOf(prefix + name), run), signal);
    },
  };
}

function medium(): WebStorage {
  const { localStorage } = globalThis as { localStorage?: WebStorage };
  if (localStorage === undefined) throw new Error("There is no localStorage here. Choose another storage.");
  return localStorage;
}

const keysOf = (storage: WebStorage): string[] =>
  Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? "");

/** The number of the last write under that key; `null` where nothing is, 0 where nobody can read it. */
function numberOf(key: string): number | null {
  const text = medium().getItem(key);
  return text === null ? null : ((parsed(text) as Partial<Numbered> | null)?.turn ?? 0);
}

function readable(read: (name: string) => StoredSubmission | null, name: string): StoredSubmission[] {
  try {
    const stored = read(name);
    return stored === null ? [] : [stored];
  } catch {
    return [];
  }
}

/** No step of localStorage is atomic across tabs: whoever wrote looks again, a moment later, whether it is still there. */
const leases: LeaseMedium = {
  async swap(name, decide) {
    const next = decide(leaseOf(name));
    if (next === null) medium().removeItem(name);
    else if (next !== undefined) {
      medium().setItem(name, JSON.stringify(next));
      await sleep(SETTLE_MS);
    }
    return leaseOf(name);
  },
  drop: (name) => medium().removeItem(name),
};

/** One that cannot be read counts as none: nothing but time is lost by taking it. */
const leaseOf = (name: string): Lease | null => parsed(medium().getItem(name) ?? "") as Lease | null;
