import { createHash } from "node:crypto";
import { OncekeyError } from "../core/errors.ts";
import { parseKey, storedKey } from "../core/key.ts";
import type { Store } from "../core/store.ts";
import { type InspectedEntry, type InspectQuery, inspectEntries } from "../stores/postgres/index.ts";
import type { Command, Report } from "./command.ts";
import type { CommandLine } from "./command-line.ts";
import { type Database, databaseOptions, withStore } from "./database.ts";
import { sqlStateOf } from "./failure.ts";
import { entriesText } from "./inspect-text.ts";
import { type RecordedSummary, recordedSummary } from "./queries.ts";

/** As many as `inspectEntries` gives at most. */
const MOST_ENTRIES = 1_000;

/** What is told of an entry's outcome: never its content. */
export type OutcomeSummary =
  | { readonly kind: "none" }
  /** Stored once, its content is no longer kept. */
  | { readonly kind: "gone" }
  /** `provisional`: what a captured handler answered before its end became unknown. */
  | {
      readonly kind: "stored" | "provisional";
      readonly headerNames: readonly string[];
      readonly bodyBytes: number;
      /** Hex, to compare with what a client says it got. */
      readonly bodySha256: string;
    };

/** Something that was read, or why it could not be. */
export type Shown<Value> = Value | { readonly kind: "hidden"; readonly why: string };

/** An entry as `oncekey inspect` shows it. The stored key is left out: the operator knows what was asked for. */
export interface ShownEntry extends Omit<InspectedEntry, "key"> {
  readonly outcome: Shown<OutcomeSummary>;
  readonly recorded: Shown<RecordedSummary>;
}

/** `oncekey inspect <key>`: every entry of a key, without what clients sent or were answered. */
export const inspectCommand: Command = {
  summary: "show the entries of a key",
  about: `Shows every entry of that key, also where only digests of keys are stored; a key may have one in each tenant, client and
operation. Of bodies it shows size and digest, of headers, phases and calls the names; never what they hold. Scans the
table of entries. Ends with 3 where the key has no entry: it never arrived, its claim was rolled back, or it was purged.`,
  operands: ["key"],
  options: {
    tenant: { value: "TENANT", meaning: "only this tenant's" },
    operation: { value: "NAME", meaning: "only this operation's" },
    ...databaseOptions,
  },
  examples: [
    "oncekey inspect 8e03978e-40d5-43dd-bc93-6894a57f9324",
    "oncekey inspect --tenant acme --operation charges.create --json -- -a-key-that-begins-with-a-dash",
  ],
  run: (line) =>
    withStore(line, async (store, database) => {
      const found = await findEntries(database, line);
      const entries: ShownEntry[] = [];
      for (const entry of found) entries.push(await shownEntry(store, database, entry));
      return inspected(line.operands[0] ?? "", entries);
    }),
};

/** A key can be stored raw or as a digest, and be given as the header had it, in quotes: all of these are looked up. */
async function findEntries({ driver, schema }: Database, line: CommandLine): Promise<InspectedEntry[]> {
  const given = line.operands[0] ?? "";
  const parsed = parseKey([given], { maxLength: Number.MAX_SAFE_INTEGER });
  const keys = parsed.kind === "key" && parsed.key !== given ? [given, parsed.key] : [given];
  const found = new Map<string, InspectedEntry>();
  for (const key of keys.flatMap((raw) => [raw, storedKey(raw, "digest")])) {
    const entries = await inspectEntries(driver, { key, ...filterOf(line) }, { schema });
    for (const entry of entries) found.set(entry.id, entry);
  }
  return [...found.values()].sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime());
}

function filterOf({ values }: CommandLine): Omit<InspectQuery, "key"> {
  const tenant = values.get("tenant");
  const operation = values.get("operation");
  return { ...(tenant === undefined ? {} : { tenant }), ...(operation === undefined ? {} : { operation }) };
}

async function shownEntry(
  store: Store<unknown>,
  database: Database,
  { key: _, ...entry }: InspectedEntry,
): Promise<ShownEntry> {
  const id = Buffer.from(entry.id, "hex");
  return {
    ...entry,
    outcome: await orHidden(() => outcomeSummary(store, id)),
    recorded: await orHidden(() => recordedSummary(database, id)),
  };
}

async function outcomeSummary(store: Store<unknown>, id: Uint8Array): Promise<OutcomeSummary> {
  const entry = await store.read(id);
  if (entry === null) return { kind: "none" };
  if (entry.outcome === null) return { kind: entry.outcomeGone ? "gone" : "none" };
  const { headers, body } = entry.outcome;
  return {
    kind: entry.completedAt === null ? "provisional" : "stored",
    headerNames: headers.map(([name]) => name),
    bodyBytes: body.length,
    bodySha256: createHash("sha256").update(body).digest("hex"),
  };
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

function inspected(key: string, entries: readonly ShownEntry[]): Report {
  const truncated = entries.length >= MOST_ENTRIES;
  return {
    exitCode: entries.length === 0 ? 3 : 0,
    data: { key, truncated, entries },
    text: entriesText(entries, truncated),
  };
}
