import { ambiguous, type Found, found, none, unknown } from "oncekey";

/** An outside system under a test's full control: what it gets, when it lands, and what a look-up sees. */
export interface Provider {
  /** Sends that arrived at the other side, in order, by key. */
  readonly sent: string[];
  /** Effects that exist there, in order, by key. */
  readonly landed: string[];
  /** What the next sends do; `ok` when the list is empty. `late`: accepted, unanswered, lands when told. */
  readonly script: ("ok" | "fail" | "lost" | "late" | "hang")[];
  /** What the next look-ups say instead of the truth. */
  readonly answers: ("none" | "unknown" | "twice" | "throw" | "hang")[];
  /** Refuses every connection: nothing arrives, nothing is told. */
  down: boolean;
  call(key: string): Promise<{ id: string }>;
  find(key: string): Promise<Found<{ id: string }>>;
  cancel(key: string): Promise<void>;
  /** Lets everything that was accepted as `late` land now. */
  land(): void;
}

/** Creates a provider; with `dedupes`, one effect per key. */
export function provider({ dedupes = false }: { dedupes?: boolean } = {}): Provider {
  const sent: string[] = [];
  const landed: string[] = [];
  const cancelled = new Set<string>();
  let pending: string[] = [];
  const carryOut = (key: string) => {
    if (cancelled.has(key) || (dedupes && landed.includes(key))) return;
    landed.push(key);
  };
  const self: Provider = {
    sent,
    landed,
    script: [],
    answers: [],
    down: false,
    async call(key) {
      if (self.down) throw new Error("connection refused");
      sent.push(key);
      const what = self.script.shift() ?? "ok";
      if (what === "fail") throw new Error("the provider answered 500");
      if (what === "late") pending.push(key);
      if (what === "late" || what === "lost") {
        if (what === "lost") carryOut(key);
        throw new Error("the connection was cut");
      }
      if (what === "hang") return new Promise(() => {});
      if (cancelled.has(key)) throw new Error("the key is cancelled");
      carryOut(key);
      return { id: `auth_${landed.indexOf(key)}` };
    },
    async find(key) {
      if (self.down) throw new Error("connection refused");
      const what = self.answers.shift();
      if (what === "throw") throw new Error("the look-up failed");
      if (what === "hang") return new Promise(() => {});
      if (what === "twice") return ambiguous(2);
      if (what === "unknown") return unknown("indexing");
      if (what === "none" || !landed.includes(key)) return none();
      return found({ id: `auth_${landed.indexOf(key)}` });
    },
    async cancel(key) {
      if (self.down) throw new Error("connection refused");
      cancelled.add(key);
    },
    land() {
      for (const key of pending) carryOut(key);
      pending = [];
    },
  };
  return self;
}
