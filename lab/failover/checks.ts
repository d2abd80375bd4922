import { type Check, check } from "../support/check.ts";
import type { Action, Attempt } from "./actions.ts";
import { type BusinessRow, counted, type Evidence, identityOf } from "./evidence.ts";

const TABLES = { invoice: "invoices", charge: "charges", refund: "refunds" } as const;
const brief = ({ kind, key, amount }: Action) => ({ kind, key, amount });

/** Actions with an answer that counts. */
export const answered = (actions: readonly Action[]): Action[] => actions.filter(({ finals }) => finals.length > 0);

/** What must hold whatever the mode: the end of every client, of every key, and one row for each. */
export function checkEnds({ actions, entries, rows }: Evidence, statuses: readonly number[]): Check[] {
  const open = entries.filter(({ state }) => state !== "succeeded" && state !== "failed");
  return [
    check(
      "every client got an answer that counts",
      actions.filter(({ finals, senders }) => finals.length < senders).map(brief),
    ),
    check("no key is busy or undecided for ever", open),
    check("every answer that counts is a success or a refusal of the business", oddAnswers(actions, statuses)),
    check("at most one row of business for each key", doubledRows(rows)),
  ];
}

function oddAnswers(actions: readonly Action[], fine: readonly number[]): unknown[] {
  return actions.flatMap((action) =>
    action.finals.filter(({ status }) => !fine.includes(status ?? 0)).map(({ status, body }) => ({ status, body })),
  );
}

function doubledRows(rows: readonly BusinessRow[]): unknown[] {
  return [...counted(rows.map((row) => `${row.table} ${identityOf(row)}`))].filter(([, count]) => count > 1);
}

/** Actions whose answer names a row that is not there, or is not what the answer says; and those whose entry is gone. */
export function lostOf({ actions, entries, rows }: Evidence): Action[] {
  const present = new Map(rows.map((row) => [`${row.table} ${identityOf(row)}`, row]));
  const stored = new Set(entries.map(identityOf));
  return answered(actions).filter((action) => {
    if (!stored.has(identityOf(action))) return true;
    const [first] = action.finals;
    const told = first === undefined ? null : resourceOf(first);
    if (told === null) return false;
    const row = present.get(`${TABLES[action.kind]} ${identityOf(action)}`);
    return row?.id !== told.id || row.status !== told.status;
  });
}

interface Told {
  readonly id: string;
  readonly status: string;
}

/** What an answer says was made; `null` where it says that nothing was. */
function resourceOf({ status, body }: Attempt): Told | null {
  const parsed = JSON.parse(body) as Told & { charge?: Told };
  return status === 201 ? parsed : (parsed.charge ?? null);
}

/** Actions with two answers that count and differ. */
export function changedOf(actions: readonly Action[]): Action[] {
  return actions.filter(({ finals }) => new Set(finals.map(({ status, body }) => `${status} ${body}`)).size > 1);
}

/** Charges with more than one authorization, or more than one capture, at their provider. */
export function doubledOf({ actions, payments }: Evidence): Action[] {
  const counts = counted(payments.map(({ kind, amount }) => `${kind} ${amount}`));
  const most = (amount: number) =>
    Math.max(counts.get(`authorizations ${amount}`) ?? 0, counts.get(`captures ${amount}`) ?? 0);
  return actions.filter(({ kind, amount }) => kind === "charge" && most(amount) > 1);
}

/** Answered charges without an effect at the provider. */
function unpaidOf({ actions, payments }: Evidence): Action[] {
  const paid = new Set(payments.map(({ kind, amount }) => `${kind} ${amount}`));
  return answered(actions).filter(
    ({ kind, amount, finals }) =>
      kind === "charge" &&
      (!paid.has(`authorizations ${amount}`) || (finals[0]?.status === 201 && !paid.has(`captures ${amount}`))),
  );
}

/** Rows whose message was never delivered, and messages of rows that are not there. */
export function messagesOf({ rows, delivered }: Evidence): { readonly missing: string[]; readonly orphaned: string[] } {
  const announced = new Set(
    delivered.map(({ payload }) => {
      const { id, charge_id } = JSON.parse(payload) as { id?: string; charge_id?: string };
      return id ?? charge_id ?? "";
    }),
  );
  const due = rows.filter(
    ({ table, status }) => table === "invoices" || (table === "charges" && status === "succeeded"),
  );
  const ids = new Set(due.map(({ id }) => id));
  return {
    missing: [...ids].filter((id) => !announced.has(id)),
    orphaned: [...announced].filter((id) => !ids.has(id)),
  };
}

/** What synchronous replication has to keep: everything. */
export function checkNothingLost(evidence: Evidence): Check[] {
  const { missing, orphaned } = messagesOf(evidence);
  return [
    ...checkEnds(evidence, [201, 402]),
    check("nothing that was answered is lost", lostOf(evidence).map(brief)),
    check("every answer to one key has the same status and bytes", changedOf(evidence.actions).map(brief)),
    check(
      "no charge has a second effect, at a provider that dedupes and at one that does not",
      doubledOf(evidence).map(brief),
    ),
    check("every answered charge has its effect", unpaidOf(evidence).map(brief)),
    check("every message of what was committed is delivered", missing),
    check("no message is delivered of what is not there", orphaned),
  ];
}
