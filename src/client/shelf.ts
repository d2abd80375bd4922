import { newKey } from "./key.ts";
import type { FixedRequest } from "./request.ts";
import { isSent } from "./retry-window.ts";
import type { Settings } from "./settings.ts";
import type { StoredSubmission } from "./submission.ts";
import type { Tell } from "./tell.ts";
import { storedResult } from "./verdict.ts";

/**
 * The storage, and what this client remembers of it: a submission that it made stays one, even where the user clears the
 * storage or its result could not be written. What reads or makes raises the storage's error.
 */
export interface Shelf {
  /** What is stored under that name and counts, or `null`; `lost`: also what only this client knows. Changes nothing. */
  peek(name: string, lost?: boolean): Promise<StoredSubmission | null>;
  /**
   * The submission that counts under that name, made where the name is free; kept again where the storage was cleared.
   * For the holder of the name's lock. `silent`: what is found is no news.
   */
  place(name: string, fixed: FixedRequest, silent?: boolean): Promise<StoredSubmission>;
  /** Writes and remembers it; where writing fails, neither. */
  keep(record: StoredSubmission): Promise<void>;
  /** Remembers it, whatever is stored. */
  remember(record: StoredSubmission): void;
  /** What is remembered under that name, which may be older than what is stored. */
  remembered(name: string): StoredSubmission | undefined;
  /** Removes it, unless another one has taken its name, or what is stored cannot be read. For the holder of the name's lock. */
  remove(name: string, key: string): Promise<void>;
  /** All that are stored without a final result, oldest first. Begins to remove what is past `keepResultMs`. */
  unsettled(): Promise<StoredSubmission[]>;
}

/** A process that lives for long must not hold every submission that it ever made. */
const REMEMBERED = 999;

/** Makes a shelf. */
export function makeShelf({ storage, now, keepResultMs, keyVersion }: Settings, tell: Tell): Shelf {
  const memory = new Map<string, StoredSubmission>();
  const valid = (record: StoredSubmission | undefined) =>
    record?.settled && now() - record.settled.at > keepResultMs ? null : (record ?? null);

  const remember = (record: StoredSubmission): void => {
    memory.delete(record.name);
    memory.set(record.name, record);
    for (const name of memory.keys()) if (memory.size > REMEMBERED) memory.delete(name);
  };
  const keep = async (record: StoredSubmission): Promise<void> => {
    await storage.put(record);
    remember(record);
  };
  const remove: Shelf["remove"] = async (name, key) => {
    const stored = await storage.get(name);
    memory.delete(name);
    if (stored === null || stored.key === key) await storage.remove(name);
  };

  return {
    keep,
    remember,
    remove,
    remembered: (name) => memory.get(name),
    async peek(name, lost) {
      const stored = await storage.get(name);
      return lost || stored ? valid(newer(stored, memory.get(name))) : null;
    },
    async place(name, fixed, silent) {
      const stored = await storage.get(name);
      let found = valid(newer(stored, memory.get(name)));
      if (found && stored === null) {
        tell(name, { kind: "warning", what: "storage_cleared" });
        // Nothing was carried out and the refusal was seen, so that a new key is safe.
        if (found.settled && isFree(found)) found = null;
        else await keep(found);
      }
      if (found && placeOf(found, fixed) !== "free") {
        remember(found);
        if (!silent) tell(name, { kind: "found" });
        return found;
      }
      const record = freshRecord(name, fixed, keyVersion, now());
      await keep(record);
      tell(name, { kind: "created" });
      return record;
    },
    async unsettled() {
      // Not what only memory knows: another tab may have discarded it, and nobody is asking for it by its name here.
      const records = (await storage.list()).map((stored) => newer(stored, memory.get(stored.name)) ?? stored);
      // A removal that fails or has to wait is the next one's work.
      for (const { name, key } of records.filter((record) => !valid(record)))
        storage.exclusively(name, () => remove(name, key)).catch(() => {});
      return records.filter(({ settled }) => !settled).sort((a, b) => a.createdAt - b.createdAt);
    },
  };
}

/** A submission at hand is made again as far as it was known: its key must not begin anew what was sent long ago. */
function freshRecord(name: string, fixed: FixedRequest, version: 4 | 7, at: number): StoredSubmission {
  return {
    form: 1,
    name,
    createdAt: at,
    firstSentAt: null,
    attempts: 0,
    spentMs: 0,
    spentAt: at,
    retentionMs: null,
    settled: null,
    ...fixed,
    key: fixed.key ?? newKey(version, at),
  };
}

/** What is stored, unless this client alone knows of it or how it ended. */
function newer(stored: StoredSubmission | null, known: StoredSubmission | undefined): StoredSubmission | undefined {
  if (stored === null) return known;
  const ended = known?.settled && known.key === stored.key && known.attempts >= stored.attempts;
  return ended && stored.settled === null ? known : stored;
}

/**
 * What a request means where this submission is kept under its name: it is the `same` one; it may be put in its place
 * (`free`), because that was surely not carried out; or it is `in_the_way`.
 */
export function placeOf(
  kept: StoredSubmission,
  { request, key = kept.key }: FixedRequest,
): "same" | "free" | "in_the_way" {
  if (key === kept.key && textOf(request) === textOf(kept.request)) return "same";
  return isFree(kept) ? "free" : "in_the_way";
}

/** Whether it was surely not carried out. */
function isFree(kept: StoredSubmission): boolean {
  const result = storedResult(kept);
  return result === null ? !isSent(kept) : result.kind === "refused" && result.retry !== "never";
}

/** One text per request; a storage of the caller's may give members in another order. */
function textOf({ method, url, headers, bodyBase64 }: FixedRequest["request"]): string {
  return JSON.stringify([method, url, headers, bodyBase64]);
}
