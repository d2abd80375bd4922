import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../support/random.ts";
import type { Answer, History, Sent } from "./history.ts";
import { isFinal, meaningOf } from "./meaning.ts";
import type { Order, OrderBook } from "./orders.ts";
import { TIMES } from "./terms.ts";

/** What a lane works with. */
export interface LaneParts {
  /** Where the service is asked. */
  readonly front: string;
  readonly history: History;
  readonly book: OrderBook;
  readonly random: Random;
  /** Aborts when no new order may begin. */
  readonly stopping: AbortSignal;
}

/** One of an order's payloads, under its key. */
export interface Asking extends Sent {
  readonly path: string;
  readonly token: string;
}

const RIVAL_SHARE = 0.15;
const CHANGED_SHARE = 0.4;
const LATE_SHARE = 0.25;
const HANG_UP_SHARE = 0.2;
const LONGEST_PAUSE_MS = 600;

/**
 * A careless client over bare HTTP: sends each order several times at once over connections of their own, hangs up in the
 * middle, lets another payload race for the key, comes back with a changed one, and asks again what it knows already.
 */
export async function rawLane({ front, history, book, random, stopping }: LaneParts): Promise<void> {
  while (!stopping.aborted) {
    const order = book.next();
    const untilMs = performance.now() + TIMES.windowMs;
    const ask = (role: Sent["role"], impatient = false) =>
      untilFinal({ front, history, random }, askingOf(order, role), untilMs, impatient);
    const copies = Array.from({ length: random.between(1, 3) }, () => ask("honest", random.unit() < HANG_UP_SHARE));
    const rival = random.unit() < RIVAL_SHARE ? [ask("rival")] : [];
    const [first] = await Promise.all([...copies, ...rival]);
    if (first != null) await afterwards(order, first, ask, { book, random });
    await sleep(random.between(0, 60));
  }
}

type Ask = (role: Sent["role"]) => Promise<Answer | null>;

async function afterwards(order: Order, first: Answer, ask: Ask, { book, random }: Pick<LaneParts, "book" | "random">) {
  const meaning = meaningOf(first);
  // Somebody else's payload has the key: there is nothing more to ask under it.
  if (meaning === "mismatch") return;
  if (order.what === "charge" && meaning === "done") book.charged(order, idIn(first));
  if (random.unit() < CHANGED_SHARE) await ask("changed");
  if (random.unit() < LATE_SHARE) await ask("honest");
}

/** The id of what was made. */
function idIn({ body }: Answer): string {
  return String((JSON.parse(body) as { readonly id?: unknown }).id);
}

function askingOf(order: Order, role: Sent["role"]): Asking {
  const { caller, what, key, path, token } = order;
  const payload = { honest: order.payload, changed: order.changed, rival: order.rival }[role];
  return { ...caller, what, key, payload, role, path, token };
}

/** Sends the same bytes until the answer is final; `null` where the time was over first. `impatient`: hangs up once. */
export async function untilFinal(
  { front, history, random }: Pick<LaneParts, "front" | "history" | "random">,
  asking: Asking,
  untilMs: number,
  impatient = false,
): Promise<Answer | null> {
  for (let hangUp = impatient; performance.now() < untilMs; hangUp = false) {
    const { path, token, ...sent } = asking;
    const n = history.sent(sent);
    const patienceMs = hangUp ? random.between(1, 80) : TIMES.attemptMs;
    const answer = await post(`${front}${path}`, { token, key: sent.key, payload: sent.payload }, patienceMs);
    if (answer !== null) history.answered(n, answer);
    if (answer !== null && isFinal(answer)) return answer;
    const pauseMs = Math.min(LONGEST_PAUSE_MS, Number(answer?.retryAfter ?? 1) * 1_000);
    await sleep(random.between(10, pauseMs));
  }
  return null;
}

interface Bare {
  readonly token: string;
  readonly key: string;
  readonly payload: string;
}

/** One POST over a connection of its own; `null` where no whole answer came in time. */
function post(url: string, { token, key, payload }: Bare, patienceMs: number): Promise<Answer | null> {
  return new Promise((resolve) => {
    const headers = {
      authorization: `Bearer ${token}`,
      "idempotency-key": key,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(payload),
    };
    const sending = request(url, { method: "POST", agent: false, headers });
    const timer = setTimeout(() => sending.destroy(), patienceMs);
    sending.once("close", () => {
      clearTimeout(timer);
      // Where an answer came whole, this is too late.
      resolve(null);
    });
    sending.on("error", () => {});
    sending.once("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("error", () => {});
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("end", () => {
        if (!response.complete) return;
        const header = (name: string) => (response.headers[name] as string | undefined) ?? null;
        const body = Buffer.concat(chunks).toString("utf8");
        resolve(answerOf(response.statusCode ?? 0, header, body));
      });
    });
    sending.end(payload);
  });
}

/** An answer as the history keeps it. */
export function answerOf(status: number, header: (name: string) => string | null, body: string): Answer {
  return {
    status,
    body,
    location: header("location"),
    contentType: header("content-type"),
    retryAfter: header("retry-after"),
    replayed: header("idempotent-replayed") === "true",
  };
}
