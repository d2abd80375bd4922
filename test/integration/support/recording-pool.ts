import type pg from "pg";
import { statements } from "../../../src/stores/postgres/sql.gen.ts";
import { testPool } from "../../support/postgres.ts";

/** A pool whose connections write down what they send. */
export interface RecordingPool {
  readonly pool: pg.Pool;
  /** What was sent since the last call, in order: our statements by name, others by their first words. */
  take(): string[];
}

const names = new Map<string, string>(Object.entries(statements).map(([name, sql]) => [sql, name]));

/** Records below the driver, at the client itself: BEGIN and COMMIT are seen as they are sent. */
export function recordingPool(url: string, config: pg.PoolConfig = {}): RecordingPool {
  let sent: string[] = [];
  const pool = testPool(url, config);
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    const recording = (...args: unknown[]) => {
      sent.push(nameOf(args[0]));
      return query(...args);
    };
    Object.assign(client, { query: recording });
  });
  return {
    pool,
    take() {
      const taken = sent;
      sent = [];
      return taken;
    },
  };
}

function nameOf(query: unknown): string {
  const sql = typeof query === "string" ? query : (query as { text: string }).text;
  return names.get(sql) ?? sql.split(/\s+/).slice(0, 3).join(" ");
}
