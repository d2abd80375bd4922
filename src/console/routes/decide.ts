import { DescriptionRefused, describedOutcome, plainOutcome } from "../../core/described-outcome.ts";
import { idBytes } from "../../core/identity.ts";
import type { JsonNode } from "../../core/json/node.ts";
import { decimalText } from "../../core/json/number.ts";
import { parseJson } from "../../core/json/parse.ts";
import { systemRandom } from "../../core/random.ts";
import {
  DECIDED_RETENTION_MS,
  DECISION_FENCE_LENGTH,
  type Resolution,
  type Resolved,
  sealedResolution,
  type Verdict,
} from "../../core/resolution.ts";
import type { InspectedEntry } from "../../stores/postgres/inspect.ts";
import { entryOf } from "../../stores/postgres/operator/entries.ts";
import { offered } from "../../stores/postgres/operator/indexes.ts";
import { bodyOf, bytesOf, type Call, demandChange, look, reasonOf } from "../parts.ts";
import { badRequest, notFound, Refusal } from "../refusal.ts";

const LARGE_BODY = 1_048_576;
const LONGEST_RETENTION_MS = 36_500 * 86_400_000;

/** `POST entries/<id>/resolve`: what `oncekey resolve` does, with its refusals. */
export async function postResolve(call: Call) {
  demandChange(call);
  const { parts, id } = call;
  const resolution = await resolutionOf(call);
  // An id never changes its tenant: whose it is can be asked before it is locked.
  const entry = await ownEntry(call);
  const bytes = idBytes(id);
  const resolved = await parts.store.resolve(bytes, sealedResolution(parts.cipher, bytes, resolution));
  if (resolved.kind === "absent") throw notFound("entry");
  if (resolved.kind !== "resolved") throw refused(resolved);
  return { kind: resolution.verdict, message: consequence(resolution, entry) };
}

async function ownEntry(call: Call): Promise<InspectedEntry> {
  const entry = await look(call, async (ask) => entryOf(ask, await offered(ask), call.id, call.tenant));
  if (entry === null) throw notFound("entry");
  return entry;
}

async function resolutionOf({ asked, who }: Call): Promise<Resolution> {
  const nodes = nodesOf(await bytesOf(asked, LARGE_BODY));
  const plain = Object.fromEntries([...nodes].map(([name, node]) => [name, plainOf(node)]));
  const verdict = verdictOf(String(plain.verdict), nodes.get("outcome"), plain.retentionMs);
  const attempt = attemptOf(plain.attempt, verdict);
  const { name: by } = who.operator;
  return {
    ...verdict,
    attempt,
    force: plain.force === true,
    by,
    note: reasonOf(plain),
    fence: systemRandom.bytes(DECISION_FENCE_LENGTH),
  };
}

function nodesOf(bytes: Uint8Array): ReadonlyMap<string, JsonNode> {
  let node: JsonNode;
  try {
    // Not JSON.parse: it would lose digits of what every retry is going to be answered with.
    node = parseJson(bytes, { allowNul: true, maxDepth: 200 });
  } catch {
    throw badRequest("The body is not JSON (RFC 8259, UTF-8, no repeated members)");
  }
  if (node.kind === "object") return new Map(node.members);
  throw badRequest("The body is not a JSON object");
}

/** Members that are no part of the outcome are texts, whole numbers and booleans. */
function plainOf(node: JsonNode): unknown {
  if (node.kind === "string") return node.text;
  if (node.kind === "literal") return node.value;
  return node.kind === "number" ? node : undefined;
}

function verdictOf(verdict: string, outcome: JsonNode | undefined, retention: unknown): Verdict {
  if (verdict === "released") {
    if (outcome === undefined) return { verdict, completion: null };
    throw badRequest("What is released gets no outcome");
  }
  if (verdict !== "succeeded" && verdict !== "failed")
    throw badRequest('"verdict" is none of succeeded, failed, released');
  const retentionMs =
    retention === undefined ? DECIDED_RETENTION_MS : wholeNumber(retention, "retentionMs", LONGEST_RETENTION_MS);
  try {
    const described = describedOutcome(outcome ?? { kind: "literal", value: null }, verdict);
    return { verdict, completion: { outcome: plainOutcome(described), retentionMs, tombstoneMs: 0 } };
  } catch (error) {
    if (error instanceof DescriptionRefused) throw badRequest(`The outcome ${error.what}`);
    throw error;
  }
}

/** The attempt that was seen before the other side was looked at: what was not done may have been done by one since. */
function attemptOf(given: unknown, { verdict }: Verdict): number | null {
  if (given !== undefined && given !== null) return wholeNumber(given, "attempt", 1_000_000_000);
  if (verdict !== "failed") return null;
  throw badRequest('"attempt" is missing: the one that was shown before the other side was looked at');
}

function wholeNumber(given: unknown, name: string, most: number): number {
  const node = given as JsonNode;
  const value = node?.kind === "number" ? Number(decimalText(node)) : Number.NaN;
  if (Number.isInteger(value) && value >= 1 && value <= most) return value;
  throw badRequest(`"${name}" is not a whole number from 1 to ${most}`);
}

function refused(resolved: Exclude<Resolved, { kind: "resolved" } | { kind: "absent" }>): Refusal {
  const because = (message: string, more: Record<string, unknown> = {}) =>
    new Refusal(409, "console_refused", `${message} Nothing was changed.`, { more: { kind: resolved.kind, ...more } });
  switch (resolved.kind) {
    case "finished":
      return because(`It has an outcome already (${resolved.state}), which stays: retries have been answered with it.`);
    case "running":
      return because(
        "Its owner may still be at work, and force does not change that. Come back when its lease is over.",
        {
          claimableInMs: resolved.claimableInMs,
        },
      );
    case "changed":
      return because(
        `It was attempted again since you looked: it is at attempt ${resolved.attempt} now. Look at the other side once more, then decide with that attempt.`,
        { attempt: resolved.attempt },
      );
    case "unsettled":
      return because(
        "Something that was sent may still land. Come back when it cannot, or insist with force: you know that it will not.",
        { settlesInMs: resolved.settlesInMs, openCalls: resolved.openIntents.map(({ call }) => call) },
      );
  }
}

function consequence({ verdict, completion }: Resolution, { runKind }: InspectedEntry): string {
  if (completion !== null) {
    const hours = Math.round(completion.retentionMs / 3_600_000);
    return `Every retry is now answered with the stored ${completion.outcome.status}, for ${hours} hours.`;
  }
  return runKind === "phases"
    ? `It is ${verdict}: the next retry or the sweeper goes on from its recovery point.`
    : `It is ${verdict}: the next retry runs it again.`;
}

/** `POST entries/<id>/retry`: the sweeper is asked to take it up now. */
export async function postRetry(call: Call) {
  demandChange(call);
  const { parts, id, tenant, who } = call;
  const reason = reasonOf(await bodyOf(call.asked));
  const bytes = idBytes(id);
  return parts.database.change(async (ask) => {
    const [row] = await ask("console_retry", [bytes, tenant, who.operator.name, reason]);
    if (row?.changed === 1)
      return { kind: "asked", message: "The next sweeper that knows its operation takes it up now." };
    const entry = await entryOf(ask, await offered(ask), id, tenant);
    if (entry === null) throw notFound("entry");
    throw new Refusal(409, "console_refused", `${cannotRetry(entry)} Nothing was changed.`);
  });
}

function cannotRetry({ state, runKind }: InspectedEntry): string {
  if (state === "succeeded" || state === "failed") return `It has an outcome already (${state}).`;
  if (state === "in_progress") return "It is in progress: when its lease is over, the sweeper takes it up by itself.";
  return runKind === "phases"
    ? "Its input is not stored, so that only the client's retry can go on with it."
    : "Only the client's retry runs it again.";
}
