import { type ChildProcess, spawn } from "node:child_process";
import { rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { atEnd, createDatabase } from "../../support/postgres.ts";
import { bundledExample } from "./bundled-example.ts";
import { makeDataDir } from "./example.ts";

/** One running program of the example: an API or the provider. */
export interface Program {
  /** Where it listens. */
  readonly url: string;
  readonly pid: number;
  /** All that it has written so far, standard output and standard error. */
  output(): string;
  /** How it ended: `SIGKILL`, or an exit code as text. */
  readonly ended: Promise<string>;
  signal(name: NodeJS.Signals): void;
}

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
const START_LIMIT_MS = 60_000;

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
      const child = await spawnProgram("oncekey.mjs", common, args);
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
  const program = await spawnProgram(script, env, args);
  const ready = await readyLine(program.output, program.ended);
  return { ...program, url: ready.api ?? ready.url ?? "" };
}

async function spawnProgram(script: string, env: Environment, args: readonly string[]): Promise<Program> {
  const dir = await bundledExample();
  const file = args.map((arg) => (arg === SERVICE ? join(dir, arg) : arg));
  const child = spawn(process.execPath, [join(dir, script), ...file], {
    // Where the command finds the database client.
    cwd: CHECKOUT,
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  atEnd(() => end(child));
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  // `close`, not `exit`: what it has written is complete only then.
  const ended = new Promise<string>((done) => child.once("close", (code, signal) => done(signal ?? String(code))));
  return {
    url: "",
    pid: child.pid ?? 0,
    output: () => output,
    ended,
    signal: (name) => void child.kill(name),
  };
}

async function readyLine(output: () => string, ended: Promise<string>): Promise<{ api?: string; url?: string }> {
  const deadline = Date.now() + START_LIMIT_MS;
  let how: string | null = null;
  void ended.then((value) => {
    how = value;
  });
  for (;;) {
    const line = /^oncekey (?:payments|psp|worker) ready (\{.*\})$/m.exec(output())?.[1];
    if (line !== undefined) return JSON.parse(line);
    if (how !== null || Date.now() > deadline) throw new Error(`Not ready (${how ?? "too slow"}):\n${output()}`);
    await sleep(20);
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((done) => child.once("exit", done));
  child.kill("SIGKILL");
  await gone;
}
