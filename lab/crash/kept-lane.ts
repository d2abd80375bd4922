import { setTimeout as sleep } from "node:timers/promises";
import { type Client, createClient, type SubmissionResult } from "oncekey/client";
import { fileStorage } from "oncekey/client/file";
import type { Caller, History, What } from "./history.ts";
import { CUSTOMERS, type Order } from "./orders.ts";
import { answerOf, type LaneParts } from "./raw-lane.ts";
import { TIMES } from "./terms.ts";

/** The library's own clients, one for each token: they keep what they send, and go on with it when their process was killed. */
export type KeptClients = ReadonlyMap<string, Client>;

/** Opens them, each with a storage of its own below `directory`. */
export function keptClients(directory: string, history: History): KeptClients {
  return new Map(
    CUSTOMERS.map(([token, caller]) => [
      token,
      createClient({
        storage: fileStorage(`${directory}/${caller.tenant}-${caller.client}`),
        fetch: recorded(history, caller),
        attemptHeaders: () => ({ authorization: `Bearer ${token}` }),
        retryWindowMs: TIMES.windowMs,
        attemptTimeoutMs: TIMES.attemptMs,
        minPauseMs: 50,
        maxPauseMs: 1_000,
        keepResultMs: TIMES.windowMs,
      }),
    ]),
  );
}

/** A careful user: one order after the other, each kept until its result is known. */
export async function keptLane(clients: KeptClients, { front, history, book, random, stopping }: LaneParts) {
  while (!stopping.aborted) {
    const order = book.next();
    const { token, path, payload, key } = order;
    const headers = { "content-type": "application/json" };
    const result = await clients.get(token)?.submit(key, { url: `${front}${path}`, key, body: payload, headers });
    if (result !== undefined) note(history, order, result);
    if (result?.kind === "succeeded" && order.what === "charge") book.charged(order, idOf(result));
    await sleep(random.between(0, 60));
  }
}

/** What is known is part of the history: a client that says "surely refused" of what was carried out has lied. */
function note(history: History, { caller, what, key }: Order, result: SubmissionResult): void {
  const verdict = result.kind === "refused" && !result.certain ? "unknown" : result.kind;
  history.told({ ...caller, what, key, verdict });
}

const idOf = ({ response }: SubmissionResult & { readonly kind: "succeeded" }): string =>
  String((response.json() as { readonly id: unknown }).id);

/** The platform's fetch, with every request in the history before it leaves. */
function recorded(history: History, caller: Caller): typeof fetch {
  return async (url, init) => {
    const headers = new Headers(init?.headers);
    const key = headers.get("idempotency-key") ?? "";
    const payload = new TextDecoder().decode(init?.body as Uint8Array);
    const n = history.sent({ ...caller, what: whatAt(String(url)), key, payload, role: "honest" });
    const response = await fetch(url, init);
    const body = await response.arrayBuffer();
    const text = new TextDecoder().decode(body);
    history.answered(
      n,
      answerOf(response.status, (name) => response.headers.get(name), text),
    );
    return new Response(body, { status: response.status, headers: response.headers });
  };
}

function whatAt(url: string): What {
  const found = /\/v1\/(invoice|charge|refund)s$/.exec(url)?.[1];
  if (found === undefined) throw new Error("The lab knows no such route.");
  return found as What;
}
