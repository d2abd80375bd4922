import type { ChildProcess } from "node:child_process";
import { rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import pg from "pg";
import { atEnd, createDatabase } from "../../support/postgres.ts";
import {
  killProgram,
  type Program,
  type ProgramOptions,
  spawnProgram,
  startProgram as start,
} from "../../support/program.ts";
import { bundledExample } from "./bundled-example.ts";
import { makeDataDir } from "./example.ts";

export type { Program } from "../../support/program.ts";

/** One database, one provider, and as many API processes as a test wants: none of them owns the other two. */
export interface Lab {
  readonly psp: Program;
  /** The data directory that the APIs share (revoked tokens). */
  readonly dir: string;
  readonly databaseUrl: string;
  /** Starts an API process. */
  api(env?: Environment): Promise<Program>;
  /** Starts `oncekey worker` on the example's service. */
  worker(env?: Environment): Promise<Program>;
  /** Runs `oncekey` with these arguments to its end. */
  command(args: readonly string[]): Promise<{ readonly code: string; readonly output: string }>;
  /** The rows of one statement. */
  sql<Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]>;
}

type Environment = Readonly<Record<string, string>>;

/** What a lab is made with. */
export interface LabOptions {
  /** For every API. */
  readonly env?: Environment;
  /** A server's connection string instead of a fresh database on the shared server. */
  readonly databaseUrl?: string;
}

const CHECKOUT = resolve(import.meta.dirname, "..", "..", "..");
/** The module of the worker, below the bundle. */
const SERVICE = "service.mjs";

/** Opens a lab; everything it starts ends with the test file. No API runs a sweeper unless its environment says so. */
export async function openLab({ env = {}, databaseUrl }: LabOptions = {}): Promise<Lab> {
  const url = databaseUrl ?? (await createDatabase({ migrated: false })).url;
  const dir = makeDataDir();
  atEnd(() => rm(dir, { recursive: true, force: true, maxRetries: 5 }));
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  pool.on("error", () => undefined);
  atEnd(() => pool.end());
  const psp = await startPsp(join(dir, "psp"));
  const common = { DATABASE_URL: url, PSP_URL: psp.url, ONCEKEY_DATA_DIR: dir, ONCEKEY_WORKER: "0", ...env };
  return {
    psp,
    dir,
    databaseUrl: url,
    api: (more = {}) => startProgram("start.mjs", { PORT: "0", ONCEKEY_LAB: "1", ...common, ...more }),
    worker: (more = {}) => startProgram("oncekey.mjs", { ...common, ...more }, ["worker", SERVICE]),
    async command(args) {
      const child = spawnProgram(await optionsOf("oncekey.mjs", common, args), endedWithTheFile);
      return { code: await child.ended, output: child.output() };
    },
    sql: async (text, values = []) => (await pool.query(text, [...values])).rows,
  };
}

/** Starts a provider of its own on a ledger directory. */
export function startPsp(dir: string): Promise<Program> {
  return startProgram("psp.mjs", { PSP_PORT: "0", PSP_DATA_DIR: dir });
}

async function startProgram(script: string, env: Environment, args: readonly string[] = []): Promise<Program> {
  return start(await optionsOf(script, env, args), endedWithTheFile);
}

async function optionsOf(script: string, env: Environment, args: readonly string[]): Promise<ProgramOptions> {
  const dir = await bundledExample();
  const given = args.map((arg) => (arg === SERVICE ? join(dir, arg) : arg));
  // The checkout: where the command finds the database client.
  return { file: join(dir, script), args: given, env, cwd: CHECKOUT };
}

const endedWithTheFile = (child: ChildProcess) => atEnd(() => killProgram(child));
