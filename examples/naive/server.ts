import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type Answer, type Ledger, OPERATIONS, openLedger, plain, problem } from "./business.ts";
import { answerKnown, type Entries, type Entry, firstAnswer, isKept, openEntries, type Rules } from "./idempotency.ts";
import { readKey } from "./keys.ts";
import type { Naivety } from "./naiveties.ts";
import { fingerprint } from "./same.ts";

/** How a server is made. */
export interface NaiveOptions {
  readonly naiveties: readonly Naivety[];
  /** Default: an hour. */
  readonly retentionMs?: number;
  /** How long a duplicate waits for the first; default: five seconds. */
  readonly waitMs?: number;
}

const TENANTS: ReadonlyMap<string, string> = new Map([
  ["sk_acme", "acme"],
  ["sk_globex", "globex"],
]);

interface Shop {
  readonly rules: Rules;
  readonly ledger: Ledger;
  readonly entries: Entries;
  readonly revoked: Set<string>;
}

/**
 * An HTTP API with idempotency keys as they are usually written, and with the faults that are planted in it. Operations:
 * POST and GET on /invoices, /refunds, /closings (204) and /receipts (binary); tokens sk_acme and sk_globex; `X-Delay-Ms`;
 * POST /revoke and /restore with the token as the body's JSON string.
 */
export function createNaiveServer({ naiveties, retentionMs = 3_600_000, waitMs = 5_000 }: NaiveOptions): Server {
  const planted = new Set(naiveties);
  const rules: Rules = { has: (naivety) => planted.has(naivety), retentionMs, waitMs };
  const shop: Shop = { rules, ledger: openLedger(), entries: openEntries(rules), revoked: new Set() };
  return createServer((request, response) => {
    // Whoever broke off gets no answer; what is left locked by that is one of the faults.
    answer(shop, request, response).catch(() => response.destroy());
  });
}

async function answer(shop: Shop, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(request.url ?? "/", "http://localhost");
  if (pathname === "/revoke" || pathname === "/restore") {
    const token = String(JSON.parse((await bodyOf(request)).toString()));
    if (pathname === "/revoke") shop.revoked.add(token);
    else shop.revoked.delete(token);
    return send(response, { status: 204, headers: {}, body: Buffer.alloc(0) });
  }
  if (!OPERATIONS.includes(pathname)) return send(response, problem(404, "not_found"));
  const visit = { shop, request, response, path: pathname, tenant: tenantOf(shop, request) };
  if (request.method === "GET") return read(visit);
  if (request.method !== "POST") return send(response, problem(405, "method_not_allowed"));
  await operate(visit);
}

interface Visit {
  readonly shop: Shop;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  /** `null`: nobody that we know. */
  readonly tenant: string | null;
}

function tenantOf({ revoked }: Shop, { headers }: IncomingMessage): string | null {
  const token = /^Bearer (\S+)$/.exec(headers.authorization ?? "")?.[1] ?? "";
  return revoked.has(token) ? null : (TENANTS.get(token) ?? null);
}

function identityOf({ shop: { rules }, path, tenant }: Visit, key: string): string {
  const parts = [rules.has("one-tenant") ? "" : tenant, rules.has("one-operation") ? "" : path, key];
  return JSON.stringify(parts);
}

async function read(visit: Visit): Promise<void> {
  const { shop, request, response, path, tenant } = visit;
  if (tenant === null) return send(response, problem(401, "unauthenticated"));
  const { has } = shop.rules;
  const read = readKey(request, has);
  if (read.kind === "key" && has("any-method")) {
    const known = shop.entries.find(identityOf(visit, read.key))?.answer;
    if (known) return send(response, known);
  }
  if (read.kind === "key" && has("reads-claim")) shop.entries.start(identityOf(visit, read.key), "");
  const body = Buffer.from(JSON.stringify({ data: shop.ledger.list(path, tenant) }));
  send(response, { status: 200, headers: { "Content-Type": "application/json" }, body });
}

async function operate(visit: Visit): Promise<void> {
  const { shop, request, response, tenant } = visit;
  const { has } = shop.rules;
  const read = readKey(request, has);
  if ((request.headers["idempotency-key"]?.length ?? 0) > 300 && has("breaks-on-long-keys")) {
    return send(response, problem(500, "internal"));
  }
  if (read.kind === "key" && has("answers-first")) {
    const known = knownOf(visit, read.key)?.answer;
    if (known) return send(response, await replayed(shop, known));
  }
  if (tenant === null) return send(response, problem(401, "unauthenticated"));
  if (read.kind === "invalid") return send(response, problem(400, "key_invalid"));
  if (read.kind === "key") return operateOnce(visit, tenant, read.key);
  const isOptional = has("optional-key") || has("ignores-keys") || has("empty-is-none");
  if (!isOptional) return send(response, has("plain-missing") ? plain(400) : problem(400, "key_missing"));
  send(response, await run(visit, tenant, await bodyOf(request)));
}

/** The entry of a key, whoever asks: for the fault that answers before it has asked who that is. */
function knownOf(visit: Visit, key: string): Entry | null {
  const tenants = visit.tenant === null ? [...TENANTS.values()] : [visit.tenant];
  const found = tenants.map((tenant) => visit.shop.entries.find(identityOf({ ...visit, tenant }, key)));
  return found.find((entry) => entry !== null) ?? null;
}

async function replayed({ rules }: Shop, known: Answer): Promise<Answer> {
  const entry = { fingerprint: "", answer: known, done: Promise.resolve(), finish() {}, abandon() {}, madeAtMs: 0 };
  return (await answerKnown(entry, "", rules)) ?? known;
}

async function operateOnce(visit: Visit, tenant: string, key: string): Promise<void> {
  const { shop, request, response } = visit;
  const { has } = shop.rules;
  const identity = identityOf(visit, key);
  if (shop.entries.find(identity) === null && isLate(visit)) return send(response, problem(412, "too_late"));
  if (has("claims-early") && shop.entries.find(identity) === null) {
    const early = shop.entries.start(identity, "");
    const body = await bodyOf(request);
    early.fingerprint = fingerprint(body, has);
    return runEntry(visit, tenant, { identity, body, entry: early });
  }
  const body = await bodyOf(request);
  const print = fingerprint(body, has);
  const known = shop.entries.find(identity);
  const answered = known === null ? null : await answerKnown(known, print, shop.rules);
  if (answered !== null) return send(response, answered);
  // Where it looks first, nobody else sees that this one runs.
  const entry = has("looks-first") ? null : shop.entries.start(identity, print);
  return runEntry(visit, tenant, { identity, body, entry });
}

interface Claimed {
  readonly identity: string;
  readonly body: Buffer;
  readonly entry: Entry | null;
}

async function runEntry(visit: Visit, tenant: string, { identity, body, entry }: Claimed): Promise<void> {
  const { shop, response } = visit;
  const { has } = shop.rules;
  const made = await run(visit, tenant, body);
  const keep = () => {
    if (!isKept(made, has)) {
      shop.entries.drop(identity);
      return entry?.abandon();
    }
    (entry ?? shop.entries.start(identity, fingerprint(body, has))).finish(made);
  };
  if (!has("forgets-hang-ups")) keep();
  else if (!response.destroyed) response.once("finish", keep);
  send(response, firstAnswer(made, has));
}

function run({ shop, request, path }: Visit, tenant: string, body: Buffer): Promise<Answer> {
  return shop.ledger.run(path, tenant, body, Number(request.headers["x-delay-ms"] ?? "0"));
}

/** First sent before all that is kept, by the client's own word. */
function isLate({ shop: { rules }, request: { headers } }: Visit): boolean {
  const firstSent = Date.parse(String(headers["idempotency-first-sent"] ?? ""));
  return Date.now() - firstSent > rules.retentionMs && !rules.has("runs-late");
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function send(response: ServerResponse, { status, headers, body }: Answer): void {
  response.writeHead(status, { ...headers });
  response.end(body.length === 0 ? undefined : body);
}
