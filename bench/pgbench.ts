import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { statements } from "../src/stores/postgres/sql.gen.ts";
import { findProgram } from "../test/support/brokers/program.ts";
import { type Field, type Load, type OpenContender, startApi } from "./contenders.ts";
import { INPUT, INSERT_INVOICE } from "./invoice.ts";
import { query } from "./world.ts";

/** It is stopped in the middle of transactions, which the server must not end for that. */
const HOUR_MS = 3_600_000;

/** The whole flow of a fresh `transaction`, as Oncekey sends it: its own statements, and the business statement. */
function scriptOf(values: Record<string, string>): string {
  const id = "sha256(:n::text::bytea)";
  // pgbench has no NULL among its variables.
  const parameter = (name: string) => (name in values ? `:${name}` : "NULL");
  const insert = [id, ...Array.from({ length: 19 }, (_, at) => parameter(`p${at + 2}`)), ":xact"];
  const flow = [
    `${bound(statements.read, [id])};`,
    "BEGIN;",
    `${bound(statements.lock, [":request", ":identity", ":lock_timeout", ":idle_timeout"])} \\gset`,
    `${bound(statements.read, [id])};`,
    `${bound(INSERT_INVOICE, [":customer", ":amount_minor", ":note"])};`,
    `${bound(statements.insert_finished, insert)};`,
    "COMMIT;",
  ];
  const random = ["n", "request", "identity"].map((name) => `\\set ${name} random(1, 9000000000000000000)`);
  return `${[...random, ...flow].join("\n")}\n`;
}

/** A statement with what stands for each of its parameters. The casts stay: pgbench leaves `::` alone. */
function bound(sql: string, parameters: readonly string[]): string {
  return sql.replaceAll(/\$(\d+)/g, (_, number) => {
    const parameter = parameters[Number(number) - 1];
    if (parameter === undefined) throw new Error(`A statement has a parameter $${number} that the flow does not give.`);
    return parameter;
  });
}

/** The parameters that are the same in every request: those of an entry that Oncekey wrote itself. */
async function valuesOf(field: Field, answerBytes: number): Promise<Record<string, string>> {
  const { api, port, url } = await startApi(field, "transaction", answerBytes);
  await field.clients.ask({ port, clients: 1, keys: "fresh", requests: 1 });
  await api.ask({ kind: "close" });
  await api.end();
  const columns = [
    ...["tenant", "client", "operation", "key", "run_kind", "operation_version", "fingerprint", "wire_digest", "fence"],
    ...["seed", "input", "context", "correlation", "state", "status", "outcome", "body_pointer"],
  ];
  const [row] = await query(url, `SELECT ${columns.map((name) => `${name}::text`).join(", ")} FROM oncekey.entry`);
  const entry = columns.map((name, at) => [`p${at + 2}`, row?.[name]] as const).filter(([, value]) => value !== null);
  return {
    ...Object.fromEntries(entry.map(([name, value]) => [name, String(value)])),
    ...{ p19: "86400000", p20: "0", lock_timeout: "5000", idle_timeout: String(HOUR_MS) },
    ...{ customer: INPUT.customer, amount_minor: String(INPUT.amount_minor), note: INPUT.note },
  };
}

/**
 * The limit: pgbench on the very same SQL with prepared statements, on a database of its own. One pgbench for all slices,
 * stopped in between: one a slice would spend a good part of it on connections and on plans that ours have long made.
 */
export async function pgbenchContender(field: Field, load: Load, program: string): Promise<OpenContender> {
  const values = await valuesOf(field, load.answerBytes);
  const url = await field.world.database();
  const folder = await mkdtemp(join(tmpdir(), "oncekey-pgbench-"));
  const file = join(folder, "flow.sql");
  await writeFile(file, scriptOf(values));
  const settings = Object.entries(values).flatMap(([name, value]) => ["-D", `${name}=${value}`]);
  const flags = ["-n", "-M", "prepared", "-c", String(load.clients), "-T", "86400", "-f", file, ...settings, url];
  const child = spawn(program, flags, { stdio: ["ignore", "ignore", "inherit"], env: { LC_ALL: "C" } });
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const counter = new pg.Client({ connectionString: url });
  await counter.connect();
  await working(child, counter);
  child.kill("SIGSTOP");
  return {
    name: "pgbench",
    url,
    usage: async () => null,
    async slice(forMs) {
      const before = await inserted(counter);
      const beganAt = performance.now();
      child.kill("SIGCONT");
      await sleep(forMs);
      const requests = (await inserted(counter)) - before;
      const tookMs = performance.now() - beganAt;
      child.kill("SIGSTOP");
      if (requests === 0) throw new Error("pgbench did nothing. What it said stands above.");
      return { requests, tookMs, cpuMs: null };
    },
    async close() {
      child.kill("SIGKILL");
      await Promise.all([gone, counter.end(), rm(folder, { recursive: true, force: true })]);
    },
  };
}

/** How many business rows there have been, by their sequence. */
async function inserted(counter: pg.Client): Promise<number> {
  const { rows } = await counter.query({
    name: "inserted",
    text: "SELECT last_value::float8 AS n FROM invoice_id_seq",
  });
  return rows[0].n;
}

/** Resolves when the first transactions are through. */
async function working(child: ChildProcess, counter: pg.Client): Promise<void> {
  while ((await inserted(counter)) < 100) {
    if (child.exitCode !== null) throw new Error(`pgbench ended (${child.exitCode}).`);
    await sleep(50);
  }
}

/** Where pgbench is: on the PATH, or where Debian puts it; `null` where it is not installed. */
export function findPgbench(): string | null {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const paths = versions.map((version) => join(debian, version, "bin/pgbench"));
  return paths.find((path) => existsSync(path)) ?? findProgram("pgbench");
}
