import { inflateRawSync } from "node:zlib";
import type { StoredEntry } from "../../core/entry.ts";
import { OncekeyError } from "../../core/errors.ts";
import { decodeContent } from "../../core/stored-outcome.ts";
import { type AuditAction, noteAction } from "../../stores/postgres/operator/audit.ts";
import { sentCalls } from "../../stores/postgres/operator/calls.ts";
import { entryOf } from "../../stores/postgres/operator/entries.ts";
import { offered } from "../../stores/postgres/operator/indexes.ts";
import type { Ask } from "../../stores/postgres/operator/reading.ts";
import { bodyOf, type Call, reasonOf } from "../parts.ts";
import { badRequest, notFound, Refusal } from "../refusal.ts";
import { wholeEntry } from "./entry.ts";

const ACTIONS = {
  key: "reveal_key",
  derived_keys: "reveal_derived_keys",
  outcome: "reveal_outcome",
} as const satisfies Record<string, AuditAction>;

/** `POST entries/<id>/reveal`: shows what is masked. That it was looked at is stored before it is shown. */
export async function postReveal(call: Call) {
  const { parts, who, id, tenant } = call;
  if (!parts.limits.reveal) throw new Refusal(403, "console_reveal_off", "This console shows no masked content.");
  if (!who.operator.mayReveal) throw new Refusal(403, "console_reveal_denied", "You may not look at masked content.");
  const members = await bodyOf(call.asked);
  const what = String(members.what) as keyof typeof ACTIONS;
  if (!Object.hasOwn(ACTIONS, what)) throw badRequest('"what" is none of key, derived_keys, outcome');
  const note = reasonOf(members);
  // The audit and what is shown are of one transaction: a value comes out of it only when the note is committed.
  const value = await parts.database.change(async (ask) => {
    const entry = await entryOf(ask, await offered(ask), id, tenant);
    if (entry === null) throw notFound("entry");
    const by = who.operator.name;
    await noteAction(ask, { action: ACTIONS[what], by, tenant: entry.tenant, entryId: id, note });
    if (what === "key") return entry.key;
    return what === "derived_keys" ? derivedKeys(ask, id) : outcomeValue(call, await wholeEntry(ask, id));
  });
  return { what, value };
}

async function derivedKeys(ask: Ask, id: string) {
  const calls = await sentCalls(ask, id, false);
  return calls.map(({ call, generation, derivedKey }) => ({ call, generation, key: derivedKey }));
}

const LONGEST_BODY = 4_194_304;

function outcomeValue({ parts }: Call, entry: StoredEntry | null) {
  if (entry === null || entry.outcome === null) return { kind: entry?.outcomeGone === true ? "gone" : "none" };
  const { status, content } = entry.outcome;
  const opened = openedContent(() => parts.cipher.open(entry.id, "outcome", content));
  const { headers } = opened;
  const kind = entry.completedAt === null ? "provisional" : "stored";
  if ("elsewhere" in opened) return { kind, status, headers, body: null, elsewhere: opened.elsewhere.length };
  const limit = { maxOutputLength: LONGEST_BODY };
  const body = opened.length === null ? opened.body : new Uint8Array(inflateRawSync(opened.body, limit));
  return { kind, status, headers, ...shownBody(body) };
}

function openedContent(open: () => Uint8Array) {
  try {
    return decodeContent(open());
  } catch (error) {
    if (!(error instanceof OncekeyError)) throw error;
    throw new Refusal(
      409,
      "console_sealed",
      "It is sealed, and the console was not given its key (or it cannot be read). Nothing was shown.",
    );
  }
}

/** As text where it is text, else in base64. */
function shownBody(bytes: Uint8Array) {
  try {
    return { body: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch {
    return { bodyBase64: Buffer.from(bytes).toString("base64") };
  }
}
