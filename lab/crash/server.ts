import { chmodSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fromPg } from "oncekey/drivers/pg";
import { migrate } from "oncekey/postgres";
import pg from "pg";
import { startTestServer, type TestServer } from "../../test/support/postgres-server.ts";
import { mountSmallDisk, moveEntries, type SmallDiskResult } from "./small-disk.ts";

/** The campaign's own PostgreSQL, and the way past all proxies. */
export interface LabServer {
  readonly server: TestServer;
  /** Of the service's database. */
  readonly url: string;
  /** Straight to the server, for faults and checks. */
  readonly pool: pg.Pool;
  readonly smallDisk: SmallDiskResult;
  /** All that the server has logged so far. */
  log(): string;
  /** How many lines of the log say so. */
  logged(what: RegExp): number;
  close(): Promise<void>;
}

/** More than all pools together, and few enough to be held by one process. */
export const MAX_CONNECTIONS = 120;

/**
 * Every entry that is deleted leaves a row here, written by the database itself: what is gone could not be checked later.
 * `recorded`: phases or intents were there, which nobody may forget before the end is known. A key that comes back once its
 * outcome's retention is over is a new request: the database itself notes which ones did, so that no check has to guess.
 */
const AUDIT = `
  CREATE SCHEMA lab;
  CREATE TABLE lab.deleted_entry (
    id text NOT NULL, state text NOT NULL, attempt integer NOT NULL, recorded boolean NOT NULL, expires_at timestamptz, deleted_at timestamptz NOT NULL
  );
  CREATE FUNCTION lab.note_deleted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO lab.deleted_entry VALUES
      (encode(OLD.id, 'hex'), OLD.state, OLD.attempt, OLD.recovery_point IS NOT NULL, OLD.expires_at, clock_timestamp());
    RETURN OLD;
  END $$;
  CREATE TRIGGER note_deleted BEFORE DELETE ON oncekey.entry FOR EACH ROW EXECUTE FUNCTION lab.note_deleted();
  CREATE INDEX ON lab.deleted_entry (id);
  CREATE TABLE lab.late_key (
    tenant text NOT NULL, client text NOT NULL, operation text NOT NULL, key text NOT NULL, came_at timestamptz NOT NULL
  );
  CREATE FUNCTION lab.note_late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF EXISTS (SELECT 1 FROM lab.deleted_entry WHERE id = encode(NEW.id, 'hex') AND expires_at <= deleted_at) THEN
      INSERT INTO lab.late_key VALUES (NEW.tenant, NEW.client, NEW.operation, NEW.key, clock_timestamp());
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER note_late AFTER INSERT ON oncekey.entry FOR EACH ROW EXECUTE FUNCTION lab.note_late();`;

/** Starts it, with the service's tables, the entries on a small disk where one can be had, and the audit of deletions. */
export async function openLabServer(dir: string, port: number): Promise<LabServer> {
  const logs = join(dir, "postgres-log");
  mkdirSync(logs);
  chmodSync(logs, 0o777);
  const server = await startTestServer({ port, settings: settingsOf(logs) });
  const admin = new pg.Pool({ connectionString: server.url, max: 1 });
  await admin.query("CREATE DATABASE payments");
  const [{ data_directory = "" } = {}] = (await admin.query("SHOW data_directory")).rows;
  await admin.end();
  const url = server.urlOf("payments");
  const pool = new pg.Pool({ connectionString: url, max: 4, connectionTimeoutMillis: 5_000 });
  pool.on("error", () => {});
  pool.on("connect", (client) => void client.on("error", () => {}));
  await migrate(fromPg(pool));
  const smallDisk = mountSmallDisk(dir, String(data_directory));
  if (smallDisk.kind === "mounted") await moveEntries(pool, dir);
  await pool.query(AUDIT);
  const log = () => logTexts(logs);
  return {
    ...{ server, url, pool, smallDisk, log },
    logged: (what) =>
      log()
        .split("\n")
        .filter((line) => what.test(line)).length,
    async close() {
      await pool.end();
      await server.close();
      if (smallDisk.kind === "mounted") smallDisk.disk.close();
    },
  };
}

function settingsOf(logs: string): Readonly<Record<string, string>> {
  return {
    max_connections: String(MAX_CONNECTIONS),
    logging_collector: "on",
    log_directory: logs,
    log_filename: "server.log",
    log_file_mode: "0644",
    // The detail of a refused row is the row: the example keeps it out of its logs, and so does the lab.
    log_error_verbosity: "terse",
  };
}

function logTexts(directory: string): string {
  return readdirSync(directory)
    .map((name) => readFileSync(join(directory, name), "utf8"))
    .join("\n");
}
