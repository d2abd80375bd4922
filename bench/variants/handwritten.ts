import { createHash, randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type pg from "pg";
import { statements } from "../../src/stores/postgres/sql.gen.ts";
import { listenerOf, readBody, sendJson } from "../host.ts";
import type { InvoiceHandler, InvoiceInput } from "../invoice.ts";
import { inTransaction } from "./in-transaction.ts";
import type { Variant } from "./variant.ts";

const SCOPE = { tenant: "acme", client: "app" };
const OPERATION = "invoices.create";
const RETENTION_MS = 86_400_000;

/**
 * What a good engineer writes with bare `pg` for this one route: the same promises (one commit, replay of the stored
 * answer, a changed request refused, duplicates refused while the first one runs) with the same statements, named. It
 * compares raw bytes where Oncekey compares meaning, knows one dialect, and waits for nobody: all of that is in its favour.
 */
export function handwritten({ named = true } = {}): Variant {
  const queries = queriesOf(named);
  return {
    name: named ? "handwritten" : "handwritten-unnamed",
    title: `the same statements by hand with bare pg${named ? ", named" : ", not named"}`,
    async open({ pool, handler }) {
      const route = { pool, handler, queries };
      return { listener: listenerOf((request, response) => answer(route, request, response)) };
    },
  };
}

interface Route {
  readonly pool: pg.Pool;
  readonly handler: InvoiceHandler;
  readonly queries: ReturnType<typeof queriesOf>;
}

interface Claim {
  readonly id: Buffer;
  readonly key: string;
  readonly fingerprint: Buffer;
}

type Stored = { readonly fingerprint: Buffer; readonly status: number; readonly outcome: Buffer };

/** Names, where they are wanted: the text is then parsed once a connection. */
function queriesOf(named: boolean) {
  const query = (name: "read" | "lock" | "insert_finished") => (values: unknown[]) => ({
    ...(named ? { name: `key_${name}` } : {}),
    text: statements[name],
    values,
  });
  return { read: query("read"), lock: query("lock"), insert: query("insert_finished") };
}

async function answer(route: Route, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const key = request.headers["idempotency-key"];
  if (typeof key !== "string" || key.length === 0 || key.length > 255) return sendJson(response, 400, '{"code":"key"}');
  const raw = await readBody(request);
  const claim = claimOf(key, `${request.method} ${request.url}`, raw);
  const known = entryOf(await route.pool.query<Stored>(route.queries.read([claim.id])));
  if (known !== null) return replay(response, claim, known);
  const input = JSON.parse(String(raw)) as InvoiceInput;
  const made = await inTransaction(route.pool, (client) => once(route, client, claim, input));
  if (typeof made === "string") return sendJson(response, 201, made);
  if (made === null) return sendJson(response, 409, '{"code":"in_progress"}');
  return replay(response, claim, made);
}

/** The body that was made and stored, the entry that somebody else made meanwhile, or `null` while somebody else is at it. */
async function once(
  { handler, queries }: Route,
  client: pg.PoolClient,
  claim: Claim,
  input: InvoiceInput,
): Promise<string | Stored | null> {
  const { rows } = await client.query(queries.lock([...lockKeys(claim), "5000", "60000"]));
  if (rows[0].result !== "owner") return null;
  const found = entryOf(await client.query<Stored>(queries.read([claim.id])));
  if (found !== null) return found;
  const body = JSON.stringify(await handler.insert(client, input));
  await client.query(queries.insert([...columnsOf(claim, body), rows[0].xact]));
  return body;
}

/** Without an entry the columns of the only row are null. */
function entryOf({ rows }: { readonly rows: readonly (Stored | Record<keyof Stored, null>)[] }): Stored | null {
  const [row] = rows;
  return row === undefined || row.fingerprint === null ? null : row;
}

function columnsOf({ id, key, fingerprint }: Claim, body: string): unknown[] {
  const owner = [randomBytes(16), randomBytes(16), null, null, null];
  const entry = [id, SCOPE.tenant, SCOPE.client, OPERATION, key, "transaction", 1, fingerprint, null, ...owner];
  return [...entry, "succeeded", 201, Buffer.from(body), null, RETENTION_MS, 0];
}

function replay(response: ServerResponse, claim: Claim, stored: Stored): void {
  if (stored.fingerprint.equals(claim.fingerprint)) {
    response.setHeader("idempotent-replayed", "true");
    sendJson(response, stored.status, stored.outcome);
  } else sendJson(response, 422, '{"code":"mismatch"}');
}

function claimOf(key: string, target: string, raw: Buffer): Claim {
  const id = createHash("sha256")
    .update(JSON.stringify([SCOPE.tenant, SCOPE.client, OPERATION, key]))
    .digest();
  return { id, key, fingerprint: createHash("sha256").update(`${target}\n`).update(raw).digest() };
}

function lockKeys({ id, fingerprint }: Claim): [string, string] {
  const both = createHash("sha256").update(id).update(fingerprint).digest();
  return [both.readBigInt64BE(0).toString(), id.readBigInt64BE(0).toString()];
}
