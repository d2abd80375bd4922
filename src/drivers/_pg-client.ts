import { type SqlParameter, type SqlRow, statementName } from "../stores/postgres/driver-port.ts";

interface Querying {
  query(config: { text: string; values: any[] }): Promise<{ rows: any[] }>;
}

/** A statement of ours as `pg` takes it. Named, it is parsed and planned once on each connection. */
export function pgQuery(text: string, parameters: readonly SqlParameter[], named: boolean) {
  const query = { text, values: [...parameters] };
  return named && parameters.length > 0 ? { ...query, name: statementName(text) } : query;
}

/** What is used of the `pg` client beneath an ORM. */
export interface BeneathClient extends Querying {
  /** Tells what the server answered. Absent in the native client. */
  readonly connection?: { on: OnAnswer; removeListener: OnAnswer };
}

type OnAnswer = (event: "commandComplete", listener: (message: { text: string }) => void) => unknown;

/**
 * Runs a statement of ours on the client beneath the ORM, which would rewrite its `$1`, wrap its errors, and log its
 * parameters: keys and bodies are among them.
 */
export async function runBeneath(client: Querying | undefined, text: string, values: readonly SqlParameter[]) {
  if (client === undefined) throw new Error("The ORM has not been initialized. Nothing was sent.");
  return (await client.query({ text, values: [...values] })).rows as SqlRow[];
}

/** The same on a client of the pool, in a commit of its own. */
export async function runBorrowed(
  { take, give }: { take(): Promise<BeneathClient>; give(client: BeneathClient): unknown },
  text: string,
  values: readonly SqlParameter[],
) {
  const client = await take();
  try {
    return await runBeneath(client, text, values);
  } finally {
    give(client);
  }
}

/** What the server would say to a statement that needs a transaction (25P01), for objects that hold none. */
export function noTransaction(what: string): Error {
  return Object.assign(new Error(`${what} is in no open transaction. Nothing was sent.`), { code: "25P01" });
}
