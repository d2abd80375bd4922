import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

/** An answer before it is sent. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** What the operations made, by path and tenant. */
export interface Ledger {
  /** Runs an operation: 201, or 402 for an amount of 13. */
  run(path: string, tenant: string, body: Buffer, delayMs: number): Promise<Answer>;
  /** What was made, oldest first. */
  list(path: string, tenant: string): readonly string[];
}

const NOTHING = Buffer.alloc(0);

/** The paths of the operations: JSON, JSON, nothing, and bytes that are no text. */
export const OPERATIONS = ["/invoices", "/refunds", "/closings", "/receipts"];

/** The business: no idempotency in it. */
export function openLedger(): Ledger {
  const made = new Map<string, string[]>();
  const list = (path: string, tenant: string) => made.get(`${path} ${tenant}`) ?? [];
  return {
    list,
    async run(path, tenant, body, delayMs) {
      await sleep(delayMs);
      const amount = /"amount_minor"\s*:\s*(\d+)/.exec(body.toString("utf8"))?.[1];
      if (amount === undefined) return problem(400, "amount_missing");
      if (amount === "13") return problem(402, "declined", { attempt: randomUUID() });
      const id = randomUUID();
      made.set(`${path} ${tenant}`, [...list(path, tenant), id]);
      return answerOf(path, id, amount);
    },
  };
}

function answerOf(path: string, id: string, amount: string): Answer {
  const headers = { Location: `${path}/${id}`, "Set-Cookie": `seen=${randomUUID()}`, Date: new Date().toUTCString() };
  if (path === "/closings") return { status: 204, headers, body: NOTHING };
  if (path === "/receipts") {
    const body = Buffer.concat([Buffer.from([0x89, 0xff, 0xfe, 0x00]), randomBytes(64)]);
    return { status: 201, headers: { ...headers, "Content-Type": "application/octet-stream" }, body };
  }
  // With spaces: whoever parses and writes it anew writes other bytes.
  const body = Buffer.from(`{ "id": "${id}", "amount_minor": ${amount} }`);
  return { status: 201, headers: { ...headers, "Content-Type": "application/json" }, body };
}

/** A problem body (RFC 9457). */
export function problem(status: number, code: string, more: Readonly<Record<string, string>> = {}): Answer {
  const body = Buffer.from(JSON.stringify({ type: `/problems/${code}`, title: code, status, code, ...more }));
  return { status, headers: { "Content-Type": "application/problem+json" }, body };
}

/** A refusal that says nothing to a program. */
export function plain(status: number): Answer {
  return { status, headers: { "Content-Type": "text/plain" }, body: Buffer.from("no") };
}
