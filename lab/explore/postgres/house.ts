import { fromPg } from "oncekey/drivers/pg";
import { changeLayout, type LayoutName, migrate, postgresStore } from "oncekey/postgres";
import pg from "pg";
import { startTestServer, type TestServer } from "../../../test/support/postgres-server.ts";
import { EPOCH_MS } from "../stage.ts";

/** A PostgreSQL for schedules: its clock stands still until it is moved. */
export interface House {
  readonly server: TestServer;
  /** A connection that no schedule uses: looks on, moves the clock, cleans up. */
  readonly observer: pg.Client;
  readonly url: string;
  close(): Promise<void>;
}

/** The schema with the clock: before `pg_catalog` in the search path, so that its functions take the place of the server's. */
export const CLOCK_SCHEMA = "explored";
/** The options of a connection that has the clock. */
export const SEARCH_PATH = `-c search_path=${CLOCK_SCHEMA},pg_catalog,public`;
/** Longer than any world keeps an outcome. */
const MONTH_MS = 30 * 86_400_000;

/**
 * `clock_timestamp()` is volatile, so that it is read anew after a wait for a row; `statement_timestamp()` is stable, so that
 * it is what it was when the statement began, and may bound an index. Limits of time are those of the real clock, by
 * which a schedule may stand still for long: they are taken and not set, as the memory store does.
 */
const CLOCK = `
  CREATE SCHEMA ${CLOCK_SCHEMA};
  CREATE TABLE ${CLOCK_SCHEMA}.clock (at timestamptz NOT NULL);
  INSERT INTO ${CLOCK_SCHEMA}.clock VALUES (to_timestamp(${EPOCH_MS / 1_000}));
  CREATE FUNCTION ${CLOCK_SCHEMA}.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE plpgsql
    AS 'BEGIN RETURN (SELECT at FROM ${CLOCK_SCHEMA}.clock); END';
  CREATE FUNCTION ${CLOCK_SCHEMA}.statement_timestamp() RETURNS timestamptz STABLE LANGUAGE plpgsql
    AS 'BEGIN RETURN (SELECT at FROM ${CLOCK_SCHEMA}.clock); END';
  CREATE FUNCTION ${CLOCK_SCHEMA}.set_config(name text, value text, is_local boolean) RETURNS text LANGUAGE plpgsql
    AS $$
      BEGIN
        IF name LIKE '%\\_timeout' THEN RETURN value; END IF;
        RETURN pg_catalog.set_config(name, value, is_local);
      END
    $$;
  CREATE TABLE ${CLOCK_SCHEMA}.business (
    place bigint GENERATED ALWAYS AS IDENTITY, name text NOT NULL, content jsonb NOT NULL
  )`;

/** Starts it, with Oncekey's schema in that layout. */
export async function openHouse(layout: LayoutName): Promise<House> {
  const server = await startTestServer({ settings: { deadlock_timeout: "100ms" } });
  const pool = new pg.Pool({ connectionString: server.url, max: 1, options: SEARCH_PATH });
  await migrate(fromPg(pool));
  await pool.query(CLOCK);
  // By the schedules' clock: partitions of the real one would lie months away, and hold nothing.
  if (layout === "partitioned") await changeLayout(fromPg(pool), layout, { widthMs: MONTH_MS, retentionMs: MONTH_MS });
  await pool.end();
  const observer = new pg.Client({ connectionString: server.url });
  observer.on("error", () => {});
  await observer.connect();
  return {
    server,
    observer,
    url: server.url,
    async close() {
      await observer.end();
      await server.close();
    },
  };
}

/** Empties every table, for the next schedule; what says how they are laid out stays. */
export async function sweepHouse({ observer }: House): Promise<void> {
  const { rows } = await observer.query<{ name: string }>(
    "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname = 'oncekey' AND tablename NOT IN ('migration', 'layout', 'outcome_partition')",
  );
  const names = [...rows.map(({ name }) => name), `${CLOCK_SCHEMA}.business`];
  await observer.query(names.map((name) => `DELETE FROM ${name}`).join("; "));
}

/**
 * The store of one process, over a pool that has the movable clock. Without groups: a schedule moves one statement at a
 * time, and those that gather wait by the real clock.
 */
export function houseStore(pool: pg.Pool) {
  return postgresStore(fromPg(pool), { groups: false });
}
