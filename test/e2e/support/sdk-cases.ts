import type { ServerOptions } from "node:https";
import pg from "pg";
import { createDatabase } from "../../support/postgres.ts";
import { list } from "./client.ts";
import { type Lab, openLab, type Program } from "./crash-lab.ts";
import { eventually } from "./example.ts";
import { type SdkAttempt, type SdkProxy, type SwitchedDatabase, sdkProxy, switchedDatabase } from "./sdk-proxy.ts";

// The running example in an SDK's dialect. A test file opens a world, calls its SDK through `world.proxy`, and counts what
// that did with `counted`. The cases that every SDK goes through are in sdk-suite.ts.

/** The example in a dialect, with a proxy before its API and a switch before its database. */
export interface SdkWorld {
  readonly lab: Lab;
  readonly api: Program;
  /** What SDKs talk to. */
  readonly proxy: SdkProxy;
  readonly database: SwitchedDatabase;
}

/** What a world is made with. */
export interface SdkWorldOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** For SDKs that speak TLS only. */
  readonly tls?: ServerOptions;
}

/** Opens a world; it ends with the test file. */
export async function openSdkWorld(profile: string, { env = {}, tls }: SdkWorldOptions = {}): Promise<SdkWorld> {
  const { url } = await createDatabase({ migrated: false });
  const database = await switchedDatabase(url);
  // The lab counts on its own connection; only the API's goes through the switch.
  const lab = await openLab({ databaseUrl: url, env: { ONCEKEY_PROFILE: profile, ...env } });
  const api = await lab.api({ DATABASE_URL: database.url });
  return { lab, api, database, proxy: await sdkProxy(api.url, tls) };
}

/** What the operations did: rows of the business tables, payments at the provider. */
export interface Effects {
  readonly invoices: number;
  readonly charges: number;
  readonly refunds: number;
  readonly authorizations: number;
  readonly captures: number;
}

/** What came of a case. */
export interface Counted<T> {
  /** What the call resolved with. */
  readonly given: T;
  readonly effects: Effects;
  /** How often an operation was carried out, by whatever key. */
  readonly executions: number;
  /** The requests that arrived meanwhile. */
  readonly attempts: readonly SdkAttempt[];
}

/**
 * Runs a case and counts what it did in the whole world, whatever the keys: an SDK that minted a second one is seen. The
 * call catches what it expects: `() => errorOf(create())`. Raises where database and provider do not agree.
 */
export async function counted<T>(world: SdkWorld, call: () => Promise<T>): Promise<Counted<T>> {
  const before = await effectsOf(world);
  const seen = world.proxy.attempts.length;
  const given = await call();
  await eventually("nothing runs any more", 30_000, async () => !(await isRunning(world)));
  const after = await effectsOf(world);
  const names = Object.keys(before) as (keyof Effects)[];
  const effects = Object.fromEntries(names.map((name) => [name, after[name] - before[name]])) as unknown as Effects;
  if (effects.authorizations !== effects.charges) {
    throw new Error(`${effects.charges} charges here, ${effects.authorizations} at the provider.`);
  }
  const executions = effects.invoices + effects.charges + effects.refunds;
  return { given, effects, executions, attempts: world.proxy.attempts.slice(seen) };
}

/** A failing call's error; raises where the call succeeded. */
export async function errorOf(call: Promise<unknown>): Promise<unknown> {
  // Not by instanceof: some SDKs raise what is no Error.
  const settled = await call.then(
    (value) => ({ kind: "value", value }) as const,
    (error: unknown) => ({ kind: "error", error }) as const,
  );
  if (settled.kind === "error") return settled.error;
  throw new Error(`The call did not fail: ${JSON.stringify(settled.value)}`);
}

async function effectsOf({ lab }: SdkWorld): Promise<Effects> {
  const [rows] = await lab.sql<Pick<Effects, "invoices" | "charges" | "refunds">>(
    `SELECT (SELECT count(*)::int FROM invoices) AS invoices, (SELECT count(*)::int FROM charges) AS charges,
            (SELECT count(*)::int FROM refunds) AS refunds`,
  );
  if (rows === undefined) throw new Error("The business tables cannot be counted.");
  const [authorizations, captures] = await Promise.all(
    ["authorizations", "captures"].map(async (kind) => (await list(`${lab.psp.url}/${kind}`)).length),
  );
  return { ...rows, authorizations: authorizations ?? 0, captures: captures ?? 0 };
}

/** Whether any request of the API is inside its operation: a claimed entry, or a transaction that holds a key's lock. */
async function isRunning({ lab }: SdkWorld): Promise<boolean> {
  const [row] = await lab.sql<{ running: boolean }>(
    `SELECT EXISTS (SELECT FROM oncekey.entry WHERE state = 'in_progress')
         OR EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                    WHERE l.locktype = 'advisory' AND d.datname = current_database()) AS running`,
  );
  return row?.running ?? false;
}

/** Waits until a request is inside its operation (with a plan of {@link slow}, for a while): now a duplicate meets it. */
export function untilRunning(world: SdkWorld): Promise<void> {
  return eventually("a request runs", 20_000, () => isRunning(world));
}

/** A plan: the request's operation takes that long. */
export const slow = (delayMs: number) => ({ headers: { "x-lab-delay-ms": String(delayMs) } });

/**
 * Keeps every operation from writing its business rows until `release`: a request that is inside stays there, for as long as
 * a test wants a duplicate to meet it.
 */
export async function holdOperations({ lab }: SdkWorld): Promise<{ release(): Promise<void> }> {
  const client = new pg.Client({ connectionString: lab.databaseUrl });
  client.on("error", () => undefined);
  await client.connect();
  await client.query("BEGIN");
  await client.query("LOCK TABLE invoices, charges IN ACCESS EXCLUSIVE MODE");
  return { release: () => client.end() };
}
