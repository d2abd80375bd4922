import { fdatasyncSync, mkdirSync, openSync, readFileSync, truncateSync, writeSync } from "node:fs";
import { join } from "node:path";
import { parseExact, writeExact } from "../exact-json.ts";
import { type Behaviour, GOOD_DAY } from "./behaviour.ts";

/** What the provider makes. */
export type PaymentKind = "authorizations" | "captures";

/** A call that was accepted and will be carried out later, also across a restart. */
export interface PendingPayment {
  readonly id: string;
  readonly kind: PaymentKind;
  readonly key: string;
  /** Whose payment it is; missing: nobody's, as every call without `X-Psp-Account`. */
  readonly account?: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** Wall clock, milliseconds. */
  readonly landsAt: number;
}

/** A payment that was made. `object` is what callers see. */
export interface LandedPayment {
  readonly kind: PaymentKind;
  readonly key: string;
  readonly account?: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly object: Readonly<Record<string, unknown>>;
  /** Wall clock, milliseconds. */
  readonly landedAt: number;
}

/** One line of the ledger: everything that ever changed. `pending` names the accepted call that ended by it. */
export type LedgerRecord =
  | { readonly type: "landed"; readonly payment: LandedPayment; readonly pending?: string | undefined }
  | { readonly type: "accepted"; readonly pending: PendingPayment }
  | { readonly type: "dropped"; readonly pending: string }
  | { readonly type: "cancelled"; readonly kind: PaymentKind; readonly key: string; readonly account?: string }
  | { readonly type: "behaviour"; readonly change: Partial<Behaviour> };

/** The provider's whole state, and the one way to change it. */
export interface Ledger {
  /** In the order of landing. */
  readonly landed: readonly LandedPayment[];
  readonly pending: ReadonlyMap<string, PendingPayment>;
  behaviour(): Behaviour;
  /** Whether the account's key was cancelled, by itself or by a caller that sees all accounts. */
  isCancelled(call: Pick<LandedPayment, "kind" | "key" | "account">): boolean;
  /** Writes the record through to the disk, then applies it: what was answered survives a kill. */
  append(record: LedgerRecord): void;
}

/** Opens the ledger in `dir` and replays it. A last line cut short by a kill was never answered and is dropped. */
export function openLedger(dir: string): Ledger {
  mkdirSync(dir, { recursive: true });
  const path = join(dir, "ledger.jsonl");
  const file = openSync(path, "a+", 0o600);
  const bytes = readFileSync(path);
  const whole = bytes.lastIndexOf(0x0a) + 1;
  if (whole < bytes.length) truncateSync(path, whole);

  const landed: LandedPayment[] = [];
  const pending = new Map<string, PendingPayment>();
  const cancelled = new Set<string>();
  let behaviour = GOOD_DAY;

  const apply = (record: LedgerRecord): void => {
    if (record.type === "landed") landed.push(record.payment);
    if (record.type === "accepted") pending.set(record.pending.id, record.pending);
    else if ("pending" in record && record.pending !== undefined) pending.delete(record.pending);
    if (record.type === "cancelled") cancelled.add(keyOf(record));
    if (record.type === "behaviour") behaviour = { ...behaviour, ...record.change };
  };
  for (const line of bytes.toString("utf8", 0, whole).split("\n")) {
    if (line !== "") apply(parseExact(line) as LedgerRecord);
  }

  return {
    landed,
    pending,
    behaviour: () => behaviour,
    isCancelled: ({ account, ...call }) => cancelled.has(keyOf(call)) || cancelled.has(keyOf({ ...call, account })),
    append(record) {
      const line = Buffer.from(`${writeExact(record)}\n`);
      for (let at = 0; at < line.length; ) at += writeSync(file, line, at);
      fdatasyncSync(file);
      apply(record);
    },
  };
}

/** JSON, so that no key can be written to look like another account's. */
function keyOf({ kind, key, account }: { kind: PaymentKind; key: string; account?: string | undefined }): string {
  return JSON.stringify([kind, key, account ?? null]);
}
