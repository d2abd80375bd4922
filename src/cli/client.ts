import { createRequire } from "node:module";
import { join } from "node:path";
import { OncekeyError } from "../core/errors.ts";
import { fromPg, type PgPool } from "../drivers/pg.ts";
import { fromPostgresJs, type PostgresJs } from "../drivers/postgres-js.ts";
import type { Driver } from "../stores/postgres/index.ts";

/** An open database client. */
export interface OpenClient {
  readonly driver: Driver<unknown>;
  /** Closes its connections. Never rejects. */
  close(): Promise<void>;
}

/** Two: one for a transaction, one for what is asked meanwhile. */
const CONNECTIONS = 2;

const CONNECT_TIMEOUT_MS = 10_000;

const ignore = () => {};

interface PgModule {
  readonly Pool: new (options: Record<string, unknown>) => PgPool & { end(): Promise<void> };
}

type PostgresJsModule = (
  url: string,
  options: Record<string, unknown>,
) => PostgresJs & { end(options: { timeout: number }): Promise<void> };

function openPg({ Pool }: PgModule, url: string): OpenClient {
  const pool = new Pool({
    connectionString: url,
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: "oncekey",
  });
  return { driver: fromPg(pool) as Driver<unknown>, close: () => pool.end().catch(ignore) };
}

function openPostgresJs(postgres: PostgresJsModule, url: string): OpenClient {
  const sql = postgres(url, {
    max: CONNECTIONS,
    connect_timeout: CONNECT_TIMEOUT_MS / 1000,
    connection: { application_name: "oncekey" },
    onnotice: ignore,
  });
  return { driver: fromPostgresJs(sql) as Driver<unknown>, close: () => sql.end({ timeout: 5 }).catch(ignore) };
}

/** The clients that the command can use, in the order in which it looks for them. */
const clients: readonly (readonly [name: string, open: (module: never, url: string) => OpenClient])[] = [
  ["pg", openPg],
  ["postgres", openPostgresJs],
];

/**
 * Opens the database with the first client that is installed in the project of the working directory, else beside
 * Oncekey. Does not connect yet. Raises `oncekey_driver_missing`.
 */
export function openClient(url: string): OpenClient {
  for (const [name, open] of clients) {
    const module = installed(name);
    if (module !== null) return open(module as never, url);
  }
  throw missing('No database client was found: neither "pg" nor "postgres" is installed in this project');
}

function installed(name: string): unknown {
  for (const from of [join(process.cwd(), "package.json"), import.meta.url]) {
    const load = createRequire(from);
    const path = resolved(load, name);
    if (path !== null) return loaded(load, path, name);
  }
  return null;
}

function resolved(load: NodeJS.Require, name: string): string | null {
  try {
    return load.resolve(name);
  } catch {
    return null;
  }
}

function loaded(load: NodeJS.Require, path: string, name: string): unknown {
  try {
    return load(path);
  } catch (error) {
    throw missing(`The database client "${name}" is installed but cannot be loaded`, error);
  }
}

function missing(what: string, cause?: unknown): OncekeyError {
  const message = `${what}. Nothing was done. Run "npm install pg" in the project, then repeat the command.`;
  return new OncekeyError("oncekey_driver_missing", message, { cause });
}
