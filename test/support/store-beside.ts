import type { StoreHarness } from "oncekey/testing";
import { passTimeSql } from "./postgres.ts";

/** The business table of the store suite. */
export const SUITE_ROW = "CREATE TABLE suite_row (value text NOT NULL)";
const COUNT = "SELECT value FROM suite_row WHERE value = $1";
const MESSAGES = "SELECT id AS value FROM oncekey.outbox";
const RESOLUTIONS = `
  SELECT jsonb_build_object(
    'entryId', encode(entry_id, 'hex'), 'verdict', verdict, 'status', status, 'forced', forced, 'by', resolved_by,
    'note', note, 'stateBefore', state_before, 'reasonBefore', reason_before,
    'openIntents', jsonb_array_length(open_intents::jsonb)
  )::text AS value
  FROM oncekey.resolution`;
const ANNOUNCED = `
  SELECT jsonb_build_object(
    'operation', operation, 'runKind', run_kind, 'operationVersion', operation_version
  )::text AS value
  FROM oncekey.sweep_target`;

const TABLES = [
  "intent",
  "phase",
  "entry",
  "outcome",
  "outbox",
  "inbox",
  "producer",
  "subject",
  "sweep_target",
  "resolution",
  "body",
];
/** DELETE, not TRUNCATE: it makes no new files, which matters with hundreds of cases. */
const EMPTY = `WITH ${TABLES.map((table) => `${table} AS (DELETE FROM oncekey.${table})`).join(", ")} SELECT`;

/** Runs one statement beside the store, in a commit of its own. */
export type Ask = (sql: string, parameters?: unknown[]) => Promise<{ rows: readonly { value: string }[] }>;

type BesideStore = "countRows" | "messageIds" | "resolutions" | "announced" | "advance" | "close";

/** What is asked about a database from outside the store; emptied for each case. */
export async function beside(ask: Ask): Promise<Pick<StoreHarness, BesideStore>> {
  await ask(EMPTY);
  return {
    countRows: async (value) => (await ask(COUNT, [value])).rows.length,
    messageIds: async () => (await ask(MESSAGES)).rows.map((row) => row.value),
    resolutions: async () => (await ask(RESOLUTIONS)).rows.map((row) => JSON.parse(row.value)),
    announced: async () => (await ask(ANNOUNCED)).rows.map((row) => JSON.parse(row.value)),
    async advance(ms) {
      await ask(passTimeSql(ms));
    },
    close: async () => {},
  };
}
