import { cipherOf } from "../core/cipher.ts";
import { parseKey, storedKey } from "../core/key.ts";
import { type InspectedEntry, type InspectQuery, inspectEntries } from "../stores/postgres/index.ts";
import type { Command, Report } from "./command.ts";
import type { CommandLine } from "./command-line.ts";
import { type Database, databaseOptions, withStore } from "./database.ts";
import { entriesText } from "./inspect-text.ts";
import { givenKeys, keyOptions } from "./keys.ts";
import { type ShownEntry, shownEntry } from "./shown-entry.ts";

/** As many as `inspectEntries` gives at most. */
const MOST_ENTRIES = 1_000;

/** `oncekey inspect <key>`: every entry of a key, without what clients sent or were answered. */
export const inspectCommand: Command = {
  summary: "show the entries of a key",
  about: `Shows every entry of that key, also where only digests of keys are stored; a key may have one in each tenant, client
and operation. Of bodies it shows size and digest, of headers, phases and calls the names; never what they hold. A
sealed outcome is opened for that where the encryption keys are given (as oncekey rotate takes them); else it shows
the key's id and the size. Scans the table of entries. Ends with 3 where the key has no entry: it never arrived, its
claim was rolled back, or it was purged.`,
  operands: ["key"],
  options: {
    tenant: { value: "TENANT", meaning: "only this tenant's" },
    operation: { value: "NAME", meaning: "only this operation's" },
    ...keyOptions,
    ...databaseOptions,
  },
  examples: [
    "oncekey inspect 8e03978e-40d5-43dd-bc93-6894a57f9324",
    "oncekey inspect --tenant acme --operation charges.create --json -- -a-key-that-begins-with-a-dash",
  ],
  async run(line) {
    const cipher = cipherOf(await givenKeys(line, process.env));
    return withStore(line, async (store, database) => {
      const found = await findEntries(database, line);
      const entries: ShownEntry[] = [];
      // One after the other: the command has two connections, not two hundred.
      for (const entry of found) entries.push(await shownEntry(store, database, entry, cipher));
      return inspected(line.operands[0] ?? "", entries);
    });
  },
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

function inspected(key: string, entries: readonly ShownEntry[]): Report {
  const truncated = entries.length >= MOST_ENTRIES;
  return {
    exitCode: entries.length === 0 ? 3 : 0,
    data: { key, truncated, entries },
    text: entriesText(entries, truncated),
  };
}
