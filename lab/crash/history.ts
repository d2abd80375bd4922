import { closeSync, existsSync, openSync, readFileSync, writeSync } from "node:fs";

/** The three things that are asked for. */
export type What = "invoice" | "charge" | "refund";

/** Whose key it is. */
export interface Caller {
  readonly tenant: string;
  readonly client: string;
}

/**
 * A request as it is about to leave. `honest`: the submission itself, however often; `changed`: the same key with another
 * payload, sent once the key is certainly taken; `rival`: another payload that races the honest one for the key.
 */
export interface Sent extends Caller {
  readonly what: What;
  readonly key: string;
  /** The exact bytes of the body, as text. */
  readonly payload: string;
  readonly role: "honest" | "changed" | "rival";
}

/** An answer as it arrived, whole. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly location: string | null;
  readonly contentType: string | null;
  readonly retryAfter: string | null;
  readonly replayed: boolean;
}

/** One request, and what came of it: `null` where nothing came, or nothing whole. */
export interface Exchange extends Sent {
  readonly n: string;
  /** Wall clock, milliseconds. */
  readonly sentAt: number;
  readonly answer: Answer | null;
}

/** What a client told its user in the end: `succeeded`, `refused` (surely), or anything that leaves it open. */
export interface Verdict extends Caller {
  readonly what: What;
  readonly key: string;
  readonly verdict: string;
}

/** The append-only record of one client process: written before a request leaves and after its answer has arrived. */
export interface History {
  /** Writes it through before it returns; gives the number of the exchange. */
  sent(request: Sent): string;
  answered(n: string, answer: Answer): void;
  /** What the client told its user. */
  told(verdict: Verdict): void;
  close(): void;
}

interface SentLine extends Sent {
  readonly n: string;
  readonly sentAt: number;
}

interface AnsweredLine {
  readonly n: string;
  readonly answer: Answer;
}

type Line = SentLine | AnsweredLine | Verdict;

/** Opens a record. `name` is in every number: no two records may share it. */
export function openHistory(path: string, name: string): History {
  const file = openSync(path, "a", 0o600);
  let count = 0;
  // One write a line, straight to the system: it survives the kill of this process.
  const write = (line: Line) => void writeSync(file, `${JSON.stringify(line)}\n`);
  return {
    sent(request) {
      const n = `${name}:${count++}`;
      write({ ...request, n, sentAt: Date.now() });
      return n;
    },
    answered: (n, answer) => write({ n, answer }),
    told: write,
    close: () => closeSync(file),
  };
}

/** What all clients know together. */
export interface Histories {
  /** In the order of sending. */
  readonly exchanges: readonly Exchange[];
  readonly verdicts: readonly Verdict[];
}

/** Reads these records. A last line that a kill has cut short is left out. */
export function readHistories(paths: readonly string[]): Histories {
  const sent: SentLine[] = [];
  const verdicts: Verdict[] = [];
  const answers = new Map<string, Answer>();
  for (const path of paths.filter(existsSync)) {
    for (const line of readFileSync(path, "utf8").split("\n").slice(0, -1)) {
      const record = JSON.parse(line) as Line;
      if ("answer" in record) answers.set(record.n, record.answer);
      else if ("verdict" in record) verdicts.push(record);
      else sent.push(record);
    }
  }
  const exchanges = sent.map((one) => ({ ...one, answer: answers.get(one.n) ?? null }));
  return { exchanges: exchanges.sort((a, b) => a.sentAt - b.sentAt), verdicts };
}

/** The identity that an exchange asks about, as one text. */
export function identityOf({
  tenant,
  client,
  what,
  key,
}: Caller & { readonly what: What; readonly key: string }): string {
  return `${tenant} ${client} ${what} ${key}`;
}
