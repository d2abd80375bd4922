import { ENTRY_STATES } from "../core/entry.ts";
import { type StoreStatus, storeStatus } from "../stores/postgres/index.ts";
import type { Command } from "./command.ts";
import { databaseOptions, withStore } from "./database.ts";
import { alarming, aligned, bytes, counted, duration, grouped } from "./layout.ts";
import { schemaVersion } from "./queries.ts";

/** `oncekey status`: what an operator looks at first. */
export const statusCommand: Command = {
  summary: "count entries by state, and what waits",
  about: `Shows the schema's version, entries by state, the oldest in progress, what waits for the sweeper, the purge, the
relay or a person, and the size of the tables. Reads the whole table of entries.`,
  operands: [],
  options: databaseOptions,
  examples: ["DATABASE_URL=postgres://… oncekey status", "oncekey status --json"],
  run: (line) =>
    withStore(line, async (_store, database) => {
      const schema = { name: database.schema, version: await schemaVersion(database) };
      const status = await storeStatus(database.driver, { schema: database.schema });
      return { exitCode: 0, data: { schema, ...status }, text: statusText(schema, status) };
    }),
};

function statusText(schema: { name: string; version: number }, status: StoreStatus): string {
  const { entries, lapsed, expired, oldestInProgressMs, pendingMessages } = status;
  const states = ENTRY_STATES.map((state) => [state, grouped(entries[state])] as const);
  const width = Math.max(...states.map(([, count]) => count.length));
  const notes: Partial<Record<string, string>> = {
    in_progress: oldestInProgressMs === null ? "" : `oldest ${duration(oldestInProgressMs)}, ${grouped(lapsed)} lapsed`,
    needs_recovery:
      entries.needs_recovery === 0 ? "" : alarming("nobody knows what these did; oncekey inspect <key> shows why"),
  };
  const sizes = Object.entries(status.bytes).map(([table, size]) => [table, bytes(size)] as const);
  return [
    aligned([["schema", `${schema.name}, migration ${schema.version}`]]),
    "\nentries\n",
    aligned(
      states.map(([state, count]) => [state, `${count.padStart(width)}  ${notes[state] ?? ""}`] as const),
      "  ",
    ),
    "\nwaiting\n",
    aligned(
      [
        ["sweeper", counted(lapsed, "lapsed entry", "lapsed entries")],
        ["purge", counted(expired, "expired entry", "expired entries")],
        ["relay", counted(pendingMessages, "pending message", "pending messages")],
      ],
      "  ",
    ),
    "\nsize with indexes\n",
    aligned(sizes, "  "),
  ].join("");
}
