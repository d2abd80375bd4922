import type { Cipher } from "../core/cipher.ts";
import { OncekeyError } from "../core/errors.ts";
import type { Store } from "../core/store.ts";
import {
  entryResolutions,
  type InspectedEntry,
  type ListedMessage,
  listMessages,
  type RecordedSummary,
  type ResolutionRecord,
  recordedSummary,
} from "../stores/postgres/index.ts";
import { type OutcomeSummary, outcomeSummary } from "../stores/postgres/operator/outcome-summary.ts";
import type { Database } from "./database.ts";
import { sqlStateOf } from "./failure.ts";

/** Something that was read, or why it could not be. */
export type Shown<Value> = Value | { readonly kind: "hidden"; readonly why: string };

/** An entry as `oncekey inspect` shows it. The stored key is left out: the operator knows what was asked for. */
export interface ShownEntry extends Omit<InspectedEntry, "key"> {
  readonly outcome: Shown<OutcomeSummary>;
  readonly recorded: Shown<RecordedSummary>;
  /** Who settled it by hand, oldest first. */
  readonly resolutions: Shown<readonly ResolutionRecord[]>;
  /** What it sent and the outbox still has, oldest first. */
  readonly messages: Shown<readonly ListedMessage[]>;
}

/** Most messages of one entry that are shown. */
const MOST_MESSAGES = 100;

/** Gathers what is shown of an entry; what the operator's role may not read is hidden, with the reason. */
export async function shownEntry(
  store: Store<unknown>,
  { driver, schema }: Database,
  { key: _, ...entry }: InspectedEntry,
  cipher: Cipher,
): Promise<ShownEntry> {
  const id = Buffer.from(entry.id, "hex");
  return {
    ...entry,
    outcome: await orHidden(() => outcomeOf(store, id, cipher)),
    recorded: await orHidden(() => recordedSummary(driver, entry.id, { schema })),
    resolutions: await orHidden(() => entryResolutions(driver, entry.id, { schema })),
    messages: await orHidden(() => listMessages(driver, { entryId: entry.id, limit: MOST_MESSAGES }, { schema })),
  };
}

async function outcomeOf(store: Store<unknown>, id: Uint8Array, cipher: Cipher): Promise<OutcomeSummary> {
  const entry = await store.read(id);
  return entry === null ? { kind: "none" } : outcomeSummary(entry, cipher);
}

/** An operator's role may see that an entry exists and not what it holds; a newer version may have written it. */
async function orHidden<Value>(read: () => Promise<Value>): Promise<Shown<Value>> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof OncekeyError && error.code === "idempotency_version_unknown") {
      return { kind: "hidden", why: "written by a newer version" };
    }
    if (sqlStateOf(error) === "42501") {
      return { kind: "hidden", why: "this database role may not read it" };
    }
    throw error;
  }
}
