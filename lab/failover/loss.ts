import { type Check, check } from "../support/check.ts";
import type { Action } from "./actions.ts";
import { answered, changedOf, checkEnds, doubledOf, lostOf, messagesOf } from "./checks.ts";
import { type Evidence, identityOf } from "./evidence.ts";
import type { Round } from "./rounds.ts";

/** What a campaign with asynchronous replication has seen. */
export interface Seen {
  /** Before anything was sent again. */
  readonly before: Evidence;
  /** After all of it was. */
  readonly after: Evidence;
  readonly rounds: readonly Round[];
}

type Figure = readonly [label: string, figure: string | number];

const brief = ({ kind, tenant, key }: Action) => ({ kind, tenant, key });
/** The tenant whose provider dedupes. */
const DEDUPED = "acme";

/**
 * Answered outcomes that are no longer what is stored: gone, or made once more from an earlier recovery point (the sweeper
 * goes on from what is left of an entry), so that the answer to what was sent again is another one.
 */
function lostOutcomes({ before, after }: Seen): Action[] {
  return [...new Set([...lostOf(before), ...changedOf(after.actions)])];
}

/** What asynchronous replication still keeps, and that what it loses is no more than what no standby had. */
export function checkLoss(seen: Seen): Check[] {
  const { before, after, rounds } = seen;
  const lost = lostOutcomes(seen);
  const isLost = new Set(lost);
  const kept = answered(after.actions).filter((action) => !isLost.has(action));
  const doubled = doubledOf(after);
  const isExplained = (action: Action) =>
    isLost.has(action) || rounds.some(({ faultAtMs }) => wasUnderWay(action, faultAtMs));
  return [
    // A captured run of which only the claim is left is released, and waits for its client: it has sent it again by then.
    ...checkEnds({ ...before, entries: after.entries }, [201, 402, 404, 422]),
    check(
      "answers of which no standby had heard are lost with the primary",
      rounds.filter((round) => round.kind === "held" && lostIn(lost, round).length === 0),
    ),
    check(
      "nothing else is lost",
      lost.filter((action) => !rounds.some((round) => mayLose(round) && lostIn([action], round).length > 0)).map(brief),
    ),
    check("an invoice and its stored answer are kept or lost together", halfInvoices(before)),
    check(
      "what is gone is run again when it is sent again",
      lostOf(before)
        .filter((action) => !ranAgain(action, rounds))
        .map(brief),
    ),
    check("what is not lost is replayed", kept.filter(({ finals }) => finals.at(-1)?.replayed !== true).map(brief)),
    check(
      "a provider that dedupes has one effect of each charge, also of what was run again",
      doubled.filter(({ tenant }) => tenant === DEDUPED).map(brief),
    ),
    check(
      "one that does not has a second effect of nothing but what was lost or under way",
      doubled.filter((action) => !isExplained(action)).map(brief),
    ),
  ];
}

/** How much was lost, in the words of docs/guarantees.md. */
export function lossFigures(seen: Seen): Figure[] {
  const { before, after, rounds } = seen;
  const lost = lostOutcomes(seen);
  const of = (kind: Action["kind"]) => lost.filter((action) => action.kind === kind).length;
  const resumed = lost.length - lostOf(before).length;
  const promotions = rounds.filter(({ walBytes }) => walBytes !== null);
  return [
    [
      "answered outcomes lost",
      `${lost.length} (${of("invoice")} invoices, ${of("charge")} charges, ${of("refund")} refunds)`,
    ],
    ["of them, begun again from an earlier recovery point", resumed],
    ...promotions.map((round): Figure => [`lost by ${round.kind}`, windowOf(lost, round)]),
    ["keys that got a second, different answer", changedOf(lost).length],
    ["charges with a second effect where the provider does not dedupe", doubledOf(after).length],
    ["messages that were delivered of what is gone", messagesOf(before).orphaned.length],
  ];
}

function windowOf(lost: readonly Action[], round: Round): string {
  const inRound = lostIn(lost, round);
  const oldest = Math.min(round.faultAtMs, ...inRound.map(({ finals }) => finals[0]?.endedAtMs ?? Infinity));
  const age = Math.round(round.faultAtMs - oldest);
  return `${inRound.length} answers, the oldest ${age} ms old; ${round.walBytes} bytes of WAL`;
}

/** Those whose first answer came between the round's beginning and the answers that were on their way at the fault. */
function lostIn(lost: readonly Action[], { fromAtMs, faultAtMs }: Round): Action[] {
  return lost.filter(({ finals: [first] }) => {
    return first !== undefined && first.endedAtMs >= fromAtMs && first.sentAtMs <= faultAtMs;
  });
}

/** A primary that hands over in order, or comes back by itself, keeps everything. */
const mayLose = ({ kind }: Round): boolean => kind !== "switchover" && kind !== "restart";

function wasUnderWay({ attempts, finals }: Action, atMs: number): boolean {
  const sentAtMs = attempts[0]?.sentAtMs ?? Infinity;
  return sentAtMs <= atMs && (finals[0]?.endedAtMs ?? Infinity) >= atMs;
}

/**
 * Whether somebody who sent it after the fault was told that it was run: a client still retrying, or who sent it again. Who
 * did not wait for that answer is replayed it.
 */
function ranAgain(action: Action, rounds: readonly Round[]): boolean {
  const faultAtMs = rounds.find((round) => lostIn([action], round).length > 0)?.faultAtMs ?? 0;
  const unheard = action.attempts.filter(({ sentAtMs, status }) => sentAtMs > faultAtMs && status === null);
  return action.finals.some((final) => {
    const wasUnheard = unheard.some(({ endedAtMs }) => endedAtMs <= final.sentAtMs);
    return final.sentAtMs > faultAtMs && (!final.replayed || wasUnheard);
  });
}

function halfInvoices({ entries, rows }: Evidence): string[] {
  const stored = new Set(entries.filter(({ operation }) => operation === "invoices.create").map(identityOf));
  const made = new Set(rows.filter(({ table }) => table === "invoices").map(identityOf));
  return [...stored].filter((one) => !made.has(one)).concat([...made].filter((one) => !stored.has(one)));
}
