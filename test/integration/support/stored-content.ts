import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { created, createOncekey, type EncryptionKey, type OncekeyOptions, type RunKind } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { idempotent } from "oncekey/fetch";
import { createRelay, delivered } from "oncekey/outbox";
import { postgresStore } from "oncekey/postgres";
import { createSweeper } from "oncekey/sweeper";
import type pg from "pg";
import { atEnd, query, testPool } from "../../support/postgres.ts";

/** Words that only stored content holds. */
const WORDS = ["input-word", "context-word", "record-word", "header-word", "body-word", "message-word"];

/** A body of more than a kilobyte, which compresses. */
export const LONG = "body-word ".repeat(400);

/** A key of its own for every id. */
export const keyOf = (id: number): EncryptionKey => ({ id, key: new Uint8Array(32).fill(id) });

/** A ring as the command takes it. */
export const ringText = (...ids: readonly number[]) =>
  ids.map((id) => `${id}:${Buffer.from(keyOf(id).key).toString("base64")}`).join(",");

/** A ring in a file; removed at the end of the test file. */
export async function ringFile(...ids: readonly number[]): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "oncekey-ring-"));
  atEnd(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, "keys");
  await writeFile(path, ids.map((id) => ringText(id)).join("\n"), { mode: 0o600 });
  return path;
}

/** Whose request it is. */
export interface Caller {
  readonly tenant: string;
  readonly client?: string;
  readonly key: string;
  /** Another payload than usual. */
  readonly note?: string;
}

/** A service whose operations store content of every kind. */
export interface ContentService {
  /** A request over HTTP; `status`, and `code` of a problem. */
  call(kind: RunKind, caller: Caller): Promise<{ status: number; code: string | null; body: string }>;
  /** A delivery whose handler's value is remembered. */
  consume(tenant: string, id: string): Promise<string>;
  /** `<kind> <tenant> <key>` of each run of an operation's code, resumes included. */
  readonly runs: readonly string[];
  readonly sweeper: ReturnType<typeof createSweeper>;
  readonly relay: ReturnType<typeof createRelay>;
  /** Bodies of the body store, by pointer. */
  readonly bodies: Map<string, Uint8Array>;
}

/** How the service is made. */
export interface ContentOptions
  extends Pick<Partial<OncekeyOptions<pg.PoolClient>>, "encryptionKeys" | "leaseMs" | "storedKey" | "compressBodies"> {
  /** Called in the middle of `phases`, after its first phase. */
  readonly between?: (caller: Caller) => Promise<void>;
  /** Bodies longer than this lie in a body store. Default: all lie in rows. */
  readonly bodyThresholdBytes?: number;
  readonly pool?: pg.Pool;
}

/** Starts the service on that database. */
export async function contentService(url: string, options: ContentOptions = {}): Promise<ContentService> {
  const { between, bodyThresholdBytes, pool = testPool(url, { max: 6 }), ...given } = options;
  const bodies = new Map<string, Uint8Array>();
  const elsewhere = bodyThresholdBytes === undefined ? {} : { bodyStore: bodyStoreOn(bodies), bodyThresholdBytes };
  const once = createOncekey({
    store: postgresStore(fromPg(pool)),
    onError: () => {},
    compressBodies: false,
    ...elsewhere,
    ...given,
  });
  const runs: string[] = [];
  const answer = () => created("/v1/things/header-word", { note: LONG });
  const keyIn = (input: { readonly body?: unknown }) => (input.body as { key: string }).key;
  const invoices = once.transaction({
    name: "invoices.create",
    version: 1,
    async run({ input, scope, send }) {
      runs.push(`transaction ${scope.tenant} ${keyIn(input)}`);
      await send("invoice.created", { note: "message-word" }, { orderBy: "o" });
      return answer();
    },
  });
  const charges = once.phases({
    name: "charges.create",
    version: 1,
    async run(op) {
      const key = keyIn(op.input);
      runs.push(`phases ${op.scope.tenant} ${key}`);
      await op.phase("charge_created", async () => "record-word");
      await between?.({ tenant: op.scope.tenant, key });
      const recover = { dedupes: { forMs: 3_600_000 } };
      await op.call("authorize", { timeoutMs: 5_000, request: { key }, run: async () => "record-word", recover });
      return op.complete(async ({ send }) => {
        await send("charge.settled", { note: "message-word" });
        return answer();
      });
    },
  });
  const refunds = once.capture({ name: "refunds.create", version: 1, reconcile: async () => ({ kind: "not_done" }) });
  await once.start();
  const binding = {
    scope: ({ headers }: Request) => ({ tenant: headers.get("x-tenant") ?? "", client: headers.get("x-client") }),
    context: () => ({ note: "context-word" }),
  };
  const handlers = {
    transaction: idempotent(invoices, binding),
    phases: idempotent(charges, binding),
    capture: idempotent(refunds, binding, async (request) => {
      const { key } = (await request.json()) as { key: string };
      runs.push(`capture ${request.headers.get("x-tenant")} ${key}`);
      return new Response(LONG, { status: 201, headers: { location: "/v1/refunds/header-word" } });
    }),
  };
  return {
    runs,
    bodies,
    async call(kind, caller) {
      const response = await handlers[kind](requestOf(caller));
      const body = await response.text();
      const code = /"code":"(\w+)"/.exec(body)?.[1] ?? null;
      return { status: response.status, code, body };
    },
    async consume(tenant, id) {
      const delivery = { tenant, source: "payments", id };
      const handle = async () => {
        runs.push(`delivery ${tenant} ${id}`);
        return "record-word";
      };
      return (await once.consume(delivery, handle, { onDuplicate: "replay" })).kind;
    },
    sweeper: createSweeper(once),
    relay: createRelay(once, { topics: { "*": async () => delivered() } }),
  };
}

function requestOf({ tenant, client, key, note = "input-word" }: Caller): Request {
  return new Request("http://127.0.0.1/v1/things", {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "idempotency-key": key,
      "x-tenant": tenant,
      "x-request-id": `request-of-${key}`,
      ...(client === undefined ? {} : { "x-client": client }),
    },
    body: JSON.stringify({ key, note }),
  });
}

function bodyStoreOn(bodies: Map<string, Uint8Array>) {
  return {
    name: "test",
    async put(pointer: string, content: AsyncIterable<Uint8Array>) {
      const chunks: Uint8Array[] = [];
      for await (const chunk of content) chunks.push(Uint8Array.from(chunk));
      bodies.set(pointer, new Uint8Array(Buffer.concat(chunks)));
    },
    async get(pointer: string) {
      const body = bodies.get(pointer);
      return body === undefined ? null : chunksOf(body);
    },
    async remove(pointer: string) {
      bodies.delete(pointer);
    },
  };
}

async function* chunksOf(body: Uint8Array) {
  for (let at = 0; at < body.length; at += 1_000) yield body.slice(at, at + 1_000);
}

const TABLES = ["entry", "phase", "intent", "outbox", "inbox", "body"];

/** Every row of Oncekey's tables that belongs to the tenant (or to anybody), as text: what is left of its content. */
export async function rowsOf(url: string, tenant?: string): Promise<string> {
  const ofEntry = "(SELECT id FROM oncekey.entry WHERE $$TENANT$$)";
  const filters: Readonly<Record<string, string>> = {
    phase: `entry_id IN ${ofEntry}`,
    intent: `entry_id IN ${ofEntry}`,
    body: `entry_id IN ${ofEntry}`,
  };
  const tables: string[] = [];
  for (const table of TABLES) {
    const where = (filters[table] ?? "$$TENANT$$").replace(
      "$$TENANT$$",
      tenant === undefined ? "true" : `tenant = '${tenant}'`,
    );
    const rows = await query(
      url,
      `SELECT row_to_json(t)::text AS row FROM oncekey.${table} AS t WHERE ${where} ORDER BY 1`,
    );
    tables.push(...rows.map(({ row }) => `${table} ${String(row)}`));
  }
  return tables.join("\n");
}

/** Which of the words stand in rows of that tenant, in the clear. (bytea is shown in hex.) */
export async function wordsIn(url: string, tenant?: string): Promise<string[]> {
  const text = await rowsOf(url, tenant);
  return WORDS.filter((word) => text.includes(word) || text.includes(Buffer.from(word).toString("hex")));
}
