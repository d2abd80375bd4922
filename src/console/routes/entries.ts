import { ENTRY_STATES, type EntryState } from "../../core/entry.ts";
import { identityOf } from "../../core/identity.ts";
import { parseKey, storedKey } from "../../core/key.ts";
import {
  type EntryOrder,
  type EntryPage,
  type EntryPlace,
  type EntrySearch,
  neededIndex,
  searchEntries,
} from "../../stores/postgres/operator/entries.ts";
import { offered } from "../../stores/postgres/operator/indexes.ts";
import { cursorPlace, cursorText } from "../cursor.ts";
import { bodyOf, type Call, look, textMember } from "../parts.ts";
import { badRequest, Refusal } from "../refusal.ts";
import { entryRow } from "./rows.ts";

const PAGE = 50;

type Members = Readonly<Record<string, unknown>>;

/** `GET entries`: by what may stand in a URL. */
export function listEntries(call: Call) {
  const members = Object.fromEntries(call.asked.query);
  if ("key" in members || "reference" in members) {
    throw badRequest("Keys and references are searched by POST entries/search: URLs end up in logs");
  }
  return search(call, members);
}

/** `POST entries/search`: by anything. */
export async function postSearch(call: Call) {
  return search(call, await bodyOf(call.asked));
}

/** `GET unresolved`: what needs a person, oldest first. */
export async function listUnresolved(call: Call) {
  const order = { newestFirst: false, after: placeOf(call.asked.query.get("cursor")), limit: PAGE };
  const wanted: EntrySearch = { state: "needs_recovery", ...(call.tenant === null ? {} : { tenant: call.tenant }) };
  return answered(await look(call, async (ask) => searchEntries(ask, await offered(ask), wanted, order)));
}

async function search(call: Call, members: Members) {
  const wanted = searchOf(call, members);
  const after = placeOf(textMember(members, "cursor", 2_048) ?? null);
  if (wanted === null) return { entries: [], next: null };
  const order: EntryOrder = { newestFirst: true, after, limit: PAGE };
  return look(call, async (ask) => {
    const facts = await offered(ask);
    const index = neededIndex(wanted);
    if (index !== null && !facts.indexes.has(index)) throw missingIndex(index);
    return answered(await searchEntries(ask, facts, wanted, order));
  });
}

function answered({ entries, next }: EntryPage) {
  return { entries: entries.map(entryRow), next: cursorText(next) };
}

const placeOf = (cursor: string | null): EntryPlace | null =>
  cursorPlace(cursor, { createdUs: /^-?\d{1,18}$/, id: /^[0-9a-f]{64}$/ });

function missingIndex(index: string): Refusal {
  return new Refusal(
    409,
    "console_index_missing",
    `No index finds entries by this, and the whole table is not read for it. Run "oncekey console --create-indexes" once (its price: docs/console.md), or ask by id, or by key together with tenant, client and operation.`,
    { more: { index } },
  );
}

/** `null`: nothing can be found, since another tenant's is asked for. */
function searchOf({ tenant: bound }: Call, members: Members): EntrySearch | null {
  const text = (name: string, most = 255) => textMember(members, name, most) || undefined;
  const tenant = text("tenant");
  if (bound !== null && tenant !== undefined && tenant !== bound) return null;
  const shared: EntrySearch = {
    ...given("tenant", bound ?? tenant),
    ...given("operation", text("operation")),
    ...given("client", text("client")),
    ...given("state", stateOf(text("state"))),
    ...given("fromMs", instantOf(text("from"))),
    ...given("toMs", instantOf(text("to"))),
    ...idSearch(text("id")),
    ...given("reference", referenceOf(text("reference"))),
  };
  const key = text("key", 1_024);
  return key === undefined ? shared : keySearch(key, shared, members);
}

function given<Name extends keyof EntrySearch>(name: Name, value: EntrySearch[Name] | undefined) {
  return value === undefined ? {} : { [name]: value };
}

function idSearch(id: string | undefined): EntrySearch {
  if (id === undefined) return {};
  const hex = id.toLowerCase();
  if (!/^[0-9a-f]{8,64}$/.test(hex)) throw badRequest('"id" is not 8 to 64 hexadecimal digits');
  return hex.length === 64 ? { ids: [hex] } : { idPrefix: hex };
}

/**
 * A key may be stored raw or as a digest, and be given as the header had it, in quotes. Where tenant, client and operation
 * are known, they and the key make the id, which needs no index of the console's.
 */
function keySearch(given: string, shared: EntrySearch, members: Members): EntrySearch {
  const { tenant, client, operation } = shared;
  const parsed = parseKey([given], { maxLength: Number.MAX_SAFE_INTEGER });
  const raw = parsed.kind === "key" && parsed.key !== given ? [given, parsed.key] : [given];
  const knowsClient = client !== undefined || members.client === null || members.noClient === true;
  if (tenant !== undefined && operation !== undefined && knowsClient) {
    const scope = { tenant, client: client ?? null };
    const reaches = ["operation", "account"] as const;
    const ids = raw.flatMap((key) =>
      reaches.map((keySpace) => Buffer.from(identityOf(scope, operation, key, { keySpace }).id).toString("hex")),
    );
    return { ...shared, ids };
  }
  return { ...shared, keys: raw.flatMap((key) => [key, storedKey(key, "digest")]) };
}

function stateOf(state: string | undefined): EntryState | undefined {
  if (state === undefined) return undefined;
  if (ENTRY_STATES.includes(state as EntryState)) return state as EntryState;
  throw badRequest(`"state" is none of ${ENTRY_STATES.join(", ")}`);
}

function instantOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const at = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at)) throw badRequest("A time is not an ISO 8601 instant such as 2026-01-31T12:00:00Z");
  return at;
}

function referenceOf(text: string | undefined): Uint8Array | undefined {
  if (text === undefined) return undefined;
  if (!/^[A-Za-z0-9_-]{43}$/.test(text)) throw badRequest('"reference" is not 43 characters of base64url');
  return new Uint8Array(Buffer.from(text, "base64url"));
}
