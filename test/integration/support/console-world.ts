import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type ConsoleOptions, createConsole, type Operator } from "oncekey/console";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import type pg from "pg";
import { atEnd, createDatabase, query, testPool } from "../../support/postgres.ts";
import { completion, type EntryValues, newEntry, newMessage } from "../../support/store-values.ts";

/** What a route answered. */
export interface Told {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects
  readonly body: any;
  readonly headers: Headers;
}

/** Who asks, unless a test says otherwise. */
export const ADA: Operator = { name: "ada", tenant: null };

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

/** A console on a database of its own, behind `node:http`, and a store beside it. `who` says who asks. */
export async function consoleWorld(options: Partial<ConsoleOptions<pg.PoolClient>> = {}) {
  const { url } = await createDatabase();
  const driver = fromPg(testPool(url));
  const failures: unknown[] = [];
  const who: { operator: Operator | null } = { operator: ADA };
  const auth = options.passwords === undefined ? { authorize: () => who.operator } : {};
  const mounted = createConsole({ driver, ...auth, onError: (error) => failures.push(error), ...options });
  const server = createServer((req, res) => mounted.node(req, res));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  atEnd(async () => {
    mounted.close();
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ask = asking(origin);
  const csrf = async () => (await ask("GET", "session")).body.csrf as string;
  return {
    url,
    driver,
    store: postgresStore(driver),
    console: mounted,
    origin,
    who,
    failures,
    ask,
    /** A change as the page sends it. */
    change: async (path: string, body: unknown = {}, headers: Record<string, string> = {}) =>
      ask("POST", path, body, { "x-oncekey-csrf": await csrf(), ...headers }),
    query: (...statements: string[]) => query(url, ...statements),
  };
}

function asking(origin: string) {
  return async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Told> => {
    const sent = method === "GET" ? {} : { origin, "content-type": "application/json" };
    const response = await fetch(`${origin}/console/api/${path}`, {
      method,
      headers: { ...sent, ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
    return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers };
  };
}

/** What {@link consoleWorld} gives. */
export type ConsoleWorld = Awaited<ReturnType<typeof consoleWorld>>;

/** A finished entry. */
export async function finished({ store }: ConsoleWorld, values: Partial<EntryValues> = {}): Promise<string> {
  const entry = newEntry(values);
  await store.claim(entry, 60_000);
  await store.complete(entry.id, entry.fence, completion());
  return hex(entry.id);
}

/** An entry that is in progress. */
export async function running({ store }: ConsoleWorld, values: Partial<EntryValues> = {}): Promise<string> {
  const entry = newEntry(values);
  await store.claim(entry, 60_000);
  return hex(entry.id);
}

/** An entry that needs a person, with an outside call of which nobody knows what it did; its last lease is long over. */
export async function unresolved(
  { store, query: run }: ConsoleWorld,
  values: Partial<EntryValues> = {},
): Promise<string> {
  const entry = newEntry({ input: new Uint8Array([1]), ...values });
  await store.claim(entry, 60_000);
  const intent = {
    call: "authorize",
    generation: 1,
    derivedKey: "derived-key-of-the-call-0001",
    requestDigest: new Uint8Array(32),
    form: "never" as const,
    settlesWithinMs: 0,
  };
  await store.openIntent(entry.id, entry.fence, intent);
  const mark = { reason: "call_unknown: authorize", provisional: null, sweepInMs: null, quietMs: 0 };
  await store.markUnknown(entry.id, entry.fence, mark);
  const past = "now() - interval '1 minute'";
  await run(
    `UPDATE oncekey.entry SET not_before = ${past}, settles_at = ${past} WHERE id = '\\x${hex(entry.id)}'`,
    `UPDATE oncekey.intent SET settles_at = ${past}`,
  );
  return hex(entry.id);
}

/** A dead letter. */
export async function deadLetter(
  { store }: ConsoleWorld,
  values: Parameters<typeof newMessage>[0] = {},
): Promise<string> {
  const message = newMessage(values);
  await store.transaction((session) => session.send(message));
  const claimed = await store.outbox.claim({ topics: ["*"], limit: 100, leaseMs: 60_000 });
  const held = claimed.find(({ id }) => id === message.id);
  if (held === undefined) throw new Error("the message was not claimed");
  await store.outbox.bury(held, "the other side answered 400");
  return message.id;
}
