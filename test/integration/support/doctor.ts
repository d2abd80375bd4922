import { fromPg } from "oncekey/drivers/pg";
import pg from "pg";
import type { Given } from "../../../src/cli/doctor/check.ts";
import { type Checked, examine } from "../../../src/cli/doctor/examine.ts";
import { type ViewOf, viewOf } from "../../../src/cli/doctor/view.ts";
import { createDatabase, query, startTestServer, type TestServer } from "../../support/postgres.ts";
import { entriesOn } from "./cli-entries.ts";

/** What an operator says of a service that is as it should be. */
const GIVEN: Given = {
  clientWindowMs: 12 * 3_600_000,
  pool: 10,
  processes: 2,
  concurrency: 9,
  longTransactionMs: 600_000,
  manyPerDay: 10_000_000,
};

/** What a test changes of a look. */
export interface Look {
  readonly given?: Partial<Given>;
  readonly schema?: string;
  readonly now?: ViewOf["now"];
}

/** Every check's answer on that database. */
export async function lookAt(url: string, { given, schema = "oncekey", now }: Look = {}) {
  const client = opened(url);
  try {
    return await examine(
      viewOf({
        driver: client.driver,
        schema,
        given: { ...GIVEN, ...given },
        open: () => opened(url),
        ...(now === undefined ? {} : { now }),
      }),
    );
  } finally {
    await client.close();
  }
}

function opened(url: string) {
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  return { driver: fromPg(pool) as ViewOf["driver"], close: () => pool.end() };
}

/** What was found, as "check, severity: what". */
export function foundIn(results: readonly Checked[]): string[] {
  return results.flatMap(({ name, findings }) => findings.map(({ severity, what }) => `${name}, ${severity}: ${what}`));
}

/** What is found on that database. */
export async function findings(url: string, look: Look = {}): Promise<string[]> {
  return foundIn(await lookAt(url, look));
}

/** A server as production has it: commits reach the disk. */
export function durableServer(settings: Readonly<Record<string, string>> = {}): Promise<TestServer> {
  return startTestServer({ fsync: true, settings });
}

/** A migrated database with finished entries and a message, in which nothing is wrong. */
export async function healthyDatabase(server: TestServer): Promise<string> {
  const { url } = await createDatabase({ server });
  const entries = await entriesOn(url);
  await entries.invoice("8e03978e-40d5-43dd-bc93-6894a57f9324");
  await entries.charge("b5c6a3f2-7f0e-4d5c-9a52-0c8a1f3f6f01");
  return url;
}

/** Copies an entry of that operation `count` times: other ids, and what `changes` (SQL of a JSON object, `n` counts) says. */
export async function copyEntries(url: string, count: number, changes: string, operation = "charges.create") {
  await query(
    url,
    `INSERT INTO oncekey.entry
     SELECT (jsonb_populate_record(e, jsonb_build_object(
       'id', '\\x' || encode(sha256(convert_to(n || $$${changes}$$ || e.operation, 'UTF8')), 'hex')) || ${changes})).*
     FROM oncekey.entry AS e, generate_series(1, ${count}) AS n
     WHERE e.id = (SELECT id FROM oncekey.entry WHERE operation = '${operation}' LIMIT 1)`,
  );
}
