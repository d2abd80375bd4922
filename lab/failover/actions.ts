import { setTimeout as sleep } from "node:timers/promises";

/** What a client asks for. */
export type ActionKind = "invoice" | "charge" | "refund";

/** One attempt of a client, from sending to its end. Instants of `performance.now()`. */
export interface Attempt {
  readonly sentAtMs: number;
  readonly endedAtMs: number;
  /** `null`: no answer came. */
  readonly status: number | null;
  readonly body: string;
  readonly replayed: boolean;
}

/** One thing that a client wants done, and all that it was answered. */
export interface Action {
  readonly kind: ActionKind;
  readonly tenant: string;
  readonly token: string;
  readonly key: string;
  readonly payload: Readonly<Record<string, unknown>>;
  /** No other action has it: it finds the action's effects at the provider, whatever key they came under. */
  readonly amount: number;
  /** How many clients send it at the same time. */
  readonly senders: number;
  readonly attempts: Attempt[];
  /** Ends that count: a retry changes nothing about them. One for each of the clients that sent it. */
  readonly finals: Attempt[];
}

/** How clients send. Durations in milliseconds. */
export interface Sending {
  /** Base URLs of the APIs that serve the action's tenant. */
  readonly apis: readonly string[];
  /** Longest wait for one answer. */
  readonly timeoutMs: number;
  /** Asked before each attempt; `true` ends the client without an answer. */
  readonly givesUp: () => boolean;
}

const PATHS: Readonly<Record<ActionKind, string>> = {
  invoice: "/v1/invoices",
  charge: "/v1/charges",
  refund: "/v1/refunds",
};
const LONGEST_PAUSE_MS = 1_000;

/** Sends until there is an answer that counts, from one API to the next; `null` where the client gave up. */
export async function perform(
  action: Action,
  { apis, timeoutMs, givesUp }: Sending,
  first: number,
): Promise<Attempt | null> {
  for (let turn = first; !givesUp(); turn++) {
    const { attempt, pauseMs } = await send(action, apis[turn % apis.length] ?? "", timeoutMs);
    action.attempts.push(attempt);
    if (pauseMs === null) {
      action.finals.push(attempt);
      return attempt;
    }
    await sleep(pauseMs);
  }
  return null;
}

/** One attempt; `pauseMs` `null`: its answer counts. */
async function send(
  action: Action,
  api: string,
  timeoutMs: number,
): Promise<{ attempt: Attempt; pauseMs: number | null }> {
  const sentAtMs = performance.now();
  const ended = (status: number | null, body = "", replayed = false): Attempt => ({
    ...{ sentAtMs, status, body, replayed },
    endedAtMs: performance.now(),
  });
  try {
    const response = await fetch(`${api}${PATHS[action.kind]}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${action.token}`,
        "idempotency-key": action.key,
        "content-type": "application/json",
      },
      body: JSON.stringify(action.payload),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const body = await response.text();
    const attempt = ended(response.status, body, response.headers.get("idempotent-replayed") === "true");
    return { attempt, pauseMs: isFinal(response.status, body) ? null : pauseOf(response) };
  } catch {
    return { attempt: ended(null), pauseMs: 100 };
  }
}

/** A success, or a refusal that does not say "the same again". */
function isFinal(status: number, body: string): boolean {
  if (status < 300) return true;
  return status < 500 && !body.includes('"retry":"same_key"');
}

function pauseOf(response: Response): number {
  const seconds = Number(response.headers.get("retry-after") ?? "0.2");
  return Math.min(LONGEST_PAUSE_MS, seconds * 1_000 || 200);
}
