import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { writeExact } from "../exact-json.ts";
import type { Behaviour } from "./behaviour.ts";
import type { LandedPayment, Ledger, PaymentKind, PendingPayment } from "./ledger.ts";

/** What a call gets: an answer, or a connection that is cut without one. */
export type ProviderAnswer =
  | { readonly kind: "answer"; readonly status: number; readonly body: unknown }
  | { readonly kind: "cut" };

/** One payment request: the caller's account and key, and the JSON object it sent. */
export interface PaymentCall {
  readonly kind: PaymentKind;
  readonly key: string;
  /** Missing: a payment of no account. */
  readonly account?: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A payment provider: authorizations, captures, look-ups, cancellations, and its knobs. */
export interface Provider {
  pay(call: PaymentCall): Promise<ProviderAnswer>;
  /** `key` `null`: all. Without an account the look-up sees those of every account. */
  find(kind: PaymentKind, key: string | null, account?: string): ProviderAnswer;
  /** Without an account it cancels the key for every account. */
  cancel(kind: PaymentKind, key: string, account?: string): Promise<ProviderAnswer>;
  behave(change: Partial<Behaviour>): void;
  behaviour(): Behaviour;
}

type Fate = "fail" | "drop" | "land_later" | "do";
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const answer = (status: number, body: unknown): ProviderAnswer => ({ kind: "answer", status, body });

/** The provider over its ledger. Payments that were accepted before a restart land when their time comes. */
export function createProvider(ledger: Ledger): Provider {
  for (const pending of ledger.pending.values()) schedule(ledger, pending);
  return {
    async pay(call) {
      const { latency_ms, land_after_ms } = ledger.behaviour();
      const fate = takeFate(ledger);
      await sleep(latency_ms);
      if (fate === "fail") return answer(500, { error: "provider_error" });
      if (fate === "land_later") return earlierAnswer(ledger, call) ?? accept(ledger, call, land_after_ms);
      const given = earlierAnswer(ledger, call) ?? land(ledger, call);
      return fate === "drop" ? { kind: "cut" } : given;
    },
    find(kind, key, account) {
      const visibleUntil = Date.now() - ledger.behaviour().find_lag_ms;
      const hits = paymentsSeen(ledger, kind, account).filter((payment) => payment.landedAt <= visibleUntil);
      return answer(200, { data: hits.filter((hit) => key === null || hit.key === key).map((hit) => hit.object) });
    },
    async cancel(kind, key, account) {
      await sleep(ledger.behaviour().latency_ms);
      const landed = paymentsSeen(ledger, kind, account).filter((payment) => payment.key === key);
      const call = { kind, key, ...(account !== undefined && { account }) };
      if (landed.length === 0 && !ledger.isCancelled(call)) ledger.append({ type: "cancelled", ...call });
      return answer(200, { cancelled: landed.length === 0, data: landed.map((payment) => payment.object) });
    },
    behave: (change) => ledger.append({ type: "behaviour", change }),
    behaviour: () => ledger.behaviour(),
  };
}

function paymentsSeen(ledger: Ledger, kind: PaymentKind, account: string | undefined): LandedPayment[] {
  return ledger.landed.filter((one) => one.kind === kind && (account === undefined || one.account === account));
}

/** Decides at arrival, so that "the next n" are the next n to arrive, however long each of them takes. */
function takeFate(ledger: Ledger): Fate {
  const { fail_next, drop_next, land_after_ms } = ledger.behaviour();
  if (fail_next > 0) {
    ledger.append({ type: "behaviour", change: { fail_next: fail_next - 1 } });
    return "fail";
  }
  if (drop_next > 0) {
    ledger.append({ type: "behaviour", change: { drop_next: drop_next - 1 } });
    return "drop";
  }
  return land_after_ms > 0 ? "land_later" : "do";
}

/** The answer to a key that was cancelled or (where keys are deduplicated) is known already; `null` for a new payment. */
function earlierAnswer(ledger: Ledger, call: PaymentCall): ProviderAnswer | null {
  if (ledger.isCancelled(call)) return answer(409, { error: "key_cancelled" });
  if (!ledger.behaviour().dedupe) return null;
  const known = rememberedPayment(ledger, call) ?? pendingPayment(ledger, call);
  if (known !== null && !sameBody(known.body, call.body)) return answer(422, { error: "key_used_for_another_request" });
  return known !== null && "object" in known ? answer(200, known.object) : null;
}

function rememberedPayment(ledger: Ledger, call: PaymentCall): LandedPayment | null {
  const oldest = Date.now() - ledger.behaviour().dedupe_window_ms;
  return ledger.landed.findLast((one) => isSameKey(one, call) && one.landedAt > oldest) ?? null;
}

function pendingPayment(ledger: Ledger, call: PaymentCall): PendingPayment | null {
  for (const one of ledger.pending.values()) if (isSameKey(one, call)) return one;
  return null;
}

type Keyed = Pick<PaymentCall, "kind" | "key" | "account">;

const isSameKey = (a: Keyed, b: Keyed): boolean => a.kind === b.kind && a.key === b.key && a.account === b.account;

/** Takes the payment on for later and cuts the connection. A repeated key joins the call that is already waiting. */
function accept(ledger: Ledger, call: PaymentCall, landAfterMs: number): ProviderAnswer {
  if (!ledger.behaviour().dedupe || pendingPayment(ledger, call) === null) {
    const pending: PendingPayment = { ...call, id: randomUUID(), landsAt: Date.now() + landAfterMs };
    ledger.append({ type: "accepted", pending });
    schedule(ledger, pending);
  }
  return { kind: "cut" };
}

function schedule(ledger: Ledger, pending: PendingPayment): void {
  const waitMs = pending.landsAt - Date.now();
  if (waitMs > LONGEST_TIMER_MS) setTimeout(() => schedule(ledger, pending), LONGEST_TIMER_MS);
  else setTimeout(() => landPending(ledger, pending), Math.max(0, waitMs));
}

function landPending(ledger: Ledger, pending: PendingPayment): void {
  if (!ledger.pending.has(pending.id)) return;
  const dedupe = ledger.behaviour().dedupe;
  if (ledger.isCancelled(pending) || (dedupe && rememberedPayment(ledger, pending) !== null)) {
    ledger.append({ type: "dropped", pending: pending.id });
    return;
  }
  ledger.append({ type: "landed", payment: paymentOf(pending), pending: pending.id });
}

/** Makes the payment now. With `dedupe`, a call that was waiting under this key is thereby carried out. */
function land(ledger: Ledger, call: PaymentCall): ProviderAnswer {
  const payment = paymentOf(call);
  const waiting = ledger.behaviour().dedupe ? pendingPayment(ledger, call) : null;
  ledger.append({ type: "landed", payment, pending: waiting?.id });
  return answer(201, payment.object);
}

function paymentOf({ kind, key, account, body }: PaymentCall): LandedPayment {
  const landedAt = Date.now();
  const made = { id: "", status: "", key, created_at: new Date(landedAt).toISOString() };
  if (kind === "authorizations") {
    made.id = `auth_${randomUUID().replaceAll("-", "")}`;
    made.status = body.source === "tok_declined" ? "declined" : "authorized";
  } else {
    made.id = `cap_${randomUUID().replaceAll("-", "")}`;
    made.status = "captured";
  }
  const owner = account === undefined ? {} : { account };
  return { kind, key, ...owner, body, object: { ...made, ...body, ...made, ...owner }, landedAt };
}

const sorted = (body: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(body).sort(([a], [b]) => (a < b ? -1 : 1)));

function sameBody(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  return writeExact(sorted(a)) === writeExact(sorted(b));
}
