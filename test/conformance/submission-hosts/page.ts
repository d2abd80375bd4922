/** Runs in a page: the submission storage suite over that page's storage, one case when the test asks for it. */
import { indexedDbStorage } from "oncekey/client/indexeddb";
import { localStorageStorage } from "oncekey/client/local-storage";
import { type SubmissionStorageHarness, submissionStorageSuite } from "oncekey/testing";
import { databaseIn } from "./page-database.ts";

interface Page {
  readonly location: { readonly search: string };
  readonly localStorage: {
    readonly length: number;
    getItem(key: string): string | null;
    setItem(key: string, text: string): void;
    clear(): void;
  };
  /** The test's: the browser gives this origin no more than a few MiB, or as much as usual. */
  limitQuota(limited: boolean): Promise<void>;
  runCase(index: number): Promise<string | null>;
}

const page = globalThis as unknown as Page;
const newName = (): string => crypto.getRandomValues(new Uint32Array(2)).join("-");

/** Fills what is left of the 5 MiB: with large pieces, then with smaller and smaller ones. */
function fillLocalStorage(): void {
  for (let size = 1_048_576; size >= 64; ) {
    try {
      page.localStorage.setItem(`filler ${page.localStorage.length}`, "x".repeat(size));
    } catch {
      size /= 2;
    }
  }
}

/** Fills what the browser gives, down to the last pieces; random bytes, since it packs what it stores. */
async function fillDatabase(name: string): Promise<void> {
  const pieces = { of: databaseIn(name), count: 0 };
  for (let size = 1_048_576; size >= 65_536; ) {
    const piece = new Uint8Array(size);
    for (let at = 0; at < size; at += 65_536) crypto.getRandomValues(piece.subarray(at, at + 65_536));
    await pieces.of.put(piece, `filler ${pieces.count++}`, "leases").catch(() => {
      size /= 2;
    });
  }
}

async function localStorageHarness(): Promise<SubmissionStorageHarness> {
  const prefix = `suite ${newName()}:`;
  return {
    open: async () => localStorageStorage(prefix),
    fill: async () => fillLocalStorage(),
    damage: async (name) => page.localStorage.setItem(prefix + name, '{"form":1,"name":'),
    close: async () => page.localStorage.clear(),
  };
}

async function indexedDbHarness(): Promise<SubmissionStorageHarness> {
  const name = `suite ${newName()}`;
  return {
    open: async () => indexedDbStorage(name),
    fill: () => fillDatabase(name),
    damage: (submission) => databaseIn(name).put({ form: 2, name: submission }, submission, "submissions"),
    async close() {
      await page.limitQuota(false);
      await databaseIn(name).remove();
      await page.limitQuota(true);
    },
  };
}

const cases: (() => Promise<void>)[] = [];
const runner = {
  describe: (_name: string, fn: () => void) => fn(),
  it: (_name: string, run: () => Promise<void>) => cases.push(run),
};
const makeHarness = page.location.search === "?indexedDB" ? indexedDbHarness : localStorageHarness;
submissionStorageSuite(runner, "in a page", makeHarness);

page.runCase = async (index) => {
  try {
    await cases[index]?.();
    return index in cases ? null : `There is no case ${index} in the page.`;
  } catch (error) {
    return error instanceof Error ? `${error.message}\n${error.stack}` : String(error);
  }
};
