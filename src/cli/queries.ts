import type { Database } from "./database.ts";

/** What an entry has recorded, without the values: these hold what clients sent and other systems answered. */
export interface RecordedSummary {
  readonly phases: readonly { readonly position: number; readonly kind: string; readonly name: string }[];
  readonly intents: readonly {
    readonly call: string;
    readonly generation: number;
    readonly state: string;
    readonly ageMs: number;
  }[];
}

/** The last migration that was applied: may be newer than this command, where the migration says that it still fits. */
export async function schemaVersion({ driver, schema }: Database): Promise<number> {
  const [row] = await driver.run(`SELECT max(number)::int AS version FROM "${schema}".migration`, []);
  return Number(row?.version);
}

/** Phases and calls by position, intents by call and generation. Reads only columns that the console's role may see. */
export async function recordedSummary({ driver, schema }: Database, id: Uint8Array): Promise<RecordedSummary> {
  const phases = await driver.run(
    `SELECT position, kind, name FROM "${schema}".phase WHERE entry_id = $1::bytea ORDER BY position`,
    [id],
  );
  const intents = await driver.run(
    `SELECT call, generation, state, (extract(epoch FROM clock_timestamp() - started_at) * 1000)::float8 AS age_ms
     FROM "${schema}".intent WHERE entry_id = $1::bytea ORDER BY call, generation`,
    [id],
  );
  return {
    phases: phases.map((row) => ({ position: Number(row.position), kind: String(row.kind), name: String(row.name) })),
    intents: intents.map((row) => ({
      call: String(row.call),
      generation: Number(row.generation),
      state: String(row.state),
      ageMs: Number(row.age_ms),
    })),
  };
}
