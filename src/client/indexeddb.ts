import { type Connection, connection, type ObjectStore, type Request } from "./indexeddb-connection.ts";
import type { Lease, LeaseMedium } from "./lease.ts";
import type { SubmissionStorage } from "./storage.ts";
import { readStored } from "./stored-form.ts";
import type { StoredSubmission } from "./submission.ts";
import { underWebLock } from "./web-lock.ts";

/**
 * Keeps submissions in the browser's IndexedDB, shared by the tabs of an origin. A write has reached the disk before it
 * counts (where the browser knows `durability: "strict"`; Chromium, Firefox and Safari do). Quota errors and closed
 * databases are raised as they are; a connection that the browser ended is opened anew by the next call.
 */
export function indexedDbStorage(database = "oncekey"): SubmissionStorage {
  const to = connection(database, ["submissions", "leases"]);
  const leases = leasesIn(to);
  return {
    name: "indexedDB",
    async get(name) {
      const found = await to.run("submissions", "readonly", (store) => resultOf(store.get(name)));
      return found() === undefined ? null : readStored(found(), name, `The database "${database}"`);
    },
    async put(submission) {
      await to.run("submissions", "readwrite", (store) => store.put(submission, submission.name));
    },
    async list() {
      const all = await to.run("submissions", "readonly", (store) => resultOf(store.getAll()));
      return (all() as unknown[]).flatMap(readable);
    },
    async remove(name) {
      await to.run("submissions", "readwrite", (store) => store.delete(name));
    },
    exclusively: (name, run, signal) => underWebLock(`oncekey ${database} ${name}`, leases, run, signal),
  };
}

const resultOf = (request: Request) => () => request.result;

function readable(value: unknown): StoredSubmission[] {
  try {
    return [readStored(value, (value as StoredSubmission).name, "")];
  } catch {
    return [];
  }
}

/** One transaction reads and writes, so that two tabs never take the same lease. */
function leasesIn(to: Connection): LeaseMedium {
  return {
    async swap(name, decide) {
      const standing = await to.run("leases", "readwrite", (store) => swapIn(store, name, decide));
      return standing();
    },
    drop(name) {
      to.run("leases", "readwrite", (store) => {
        store.delete(name);
        // Not when the deletion has succeeded: the page may have ended by then.
        store.transaction.commit();
      }).catch(() => {});
    },
  };
}

function swapIn(store: ObjectStore, name: string, decide: (lease: Lease | null) => Lease | null | undefined) {
  let standing: Lease | null = null;
  const request = store.get(name);
  request.onsuccess = () => {
    const current = (request.result as Lease | undefined) ?? null;
    const next = decide(current);
    if (next === null) store.delete(name);
    else if (next !== undefined) store.put(next, name);
    standing = next === undefined ? current : next;
  };
  return () => standing;
}
