/** Runs in a tab: hands the storages to the test, which calls them by `page.evaluate`. */
import type { StoredSubmission } from "oncekey/client";
import { indexedDbStorage } from "oncekey/client/indexeddb";
import { localStorageStorage } from "oncekey/client/local-storage";
import { freshSubmission } from "../../support/fresh-submission.ts";

const storages = { indexedDB: indexedDbStorage(), localStorage: localStorageStorage() };

/** The functions that a tab offers. */
export interface Tab {
  storages: typeof storages;
  submission(name: string): StoredSubmission;
  /** Resolves when this tab is inside; it stays there until `letGo`, or until its end. */
  hold(storage: keyof typeof storages, name: string): Promise<void>;
  letGo(): void;
  /** Adds one to the attempts of a submission, so often, and gives the number that each turn found. */
  addTurns(storage: keyof typeof storages, name: string, turns: number): Promise<number[]>;
  /** Puts a submission where none is, and removes it where one is; gives how often one was found. */
  flipTurns(storage: keyof typeof storages, name: string, turns: number): Promise<number>;
  /** Takes the lock, or gives up after so long. */
  tryLock(storage: keyof typeof storages, name: string, giveUpAfterMs: number): Promise<"entered" | "gave up">;
}

const tab: Tab = {
  storages,
  submission: freshSubmission,
  hold: (storage, name) =>
    new Promise((inside, failed) => {
      const run = () => {
        inside();
        return new Promise<void>((end) => {
          tab.letGo = end;
        });
      };
      storages[storage].exclusively(name, run).catch(failed);
    }),
  letGo: () => {},
  async addTurns(storage, name, turns) {
    const found: number[] = [];
    const { get, put, exclusively } = storages[storage];
    for (let turn = 0; turn < turns; turn++) {
      await exclusively(name, async () => {
        const attempts = (await get(name))?.attempts ?? 0;
        found.push(attempts);
        await put({ ...tab.submission(name), attempts: attempts + 1 });
      });
    }
    return found;
  },
  async flipTurns(storage, name, turns) {
    const { get, put, remove, exclusively } = storages[storage];
    let found = 0;
    for (let turn = 0; turn < turns; turn++) {
      await exclusively(name, async () => {
        if ((await get(name)) === null) return put(tab.submission(name));
        found += 1;
        return remove(name);
      });
    }
    return found;
  },
  async tryLock(storage, name, giveUpAfterMs) {
    const abort = new AbortController();
    setTimeout(() => abort.abort(), giveUpAfterMs);
    try {
      return await storages[storage].exclusively(name, async () => "entered" as const, abort.signal);
    } catch (error) {
      if (error !== abort.signal.reason) throw error;
      return "gave up";
    }
  },
};

Object.assign(globalThis, tab, { tab });
