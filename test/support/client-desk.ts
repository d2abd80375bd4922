import {
  type ClientEvent,
  type ClientOptions,
  createClient,
  memoryStorage,
  type StoredSubmission,
  type SubmissionStorage,
} from "oncekey/client";

/** A client for tests: short pauses, its events, and clocks that stand still until they are told to move. */
export interface ClientDesk {
  readonly client: ReturnType<typeof createClient>;
  readonly storage: SubmissionStorage;
  readonly events: ClientEvent[];
  /** Each pause that was asked for, in milliseconds. */
  readonly pauses: number[];
  readonly clock: { wallMs: number; monotonicMs: number };
  /** Lets time pass on both clocks. */
  pass(ms: number): void;
  /** The kinds of the events, warnings and pauses with what they say. */
  told(): string[];
}

/** 2026-01-31T12:00:00Z. */
export const NOON = Date.UTC(2026, 0, 31, 12);

/** Makes one. A pause ends at once, and moves both clocks by its length. */
export function clientDesk(options: Partial<ClientOptions> = {}, wallMs = NOON): ClientDesk {
  const clock = { wallMs, monotonicMs: 1_000 };
  const storage = options.storage ?? memoryStorage();
  const events: ClientEvent[] = [];
  const pauses: number[] = [];
  const pass = (ms: number) => {
    clock.wallMs += ms;
    clock.monotonicMs += ms;
  };
  const client = createClient({
    now: () => clock.wallMs,
    monotonicMs: () => clock.monotonicMs,
    async pause(ms) {
      pauses.push(ms);
      pass(ms);
      await new Promise((resolve) => setImmediate(resolve));
    },
    onEvent: (event) => events.push(event),
    ...options,
    storage,
  });
  return { client, storage, events, pauses, clock, pass, told: () => events.map(spell) };
}

function spell(event: ClientEvent): string {
  if (event.kind === "pause") return `pause: ${event.why}`;
  if (event.kind === "warning") return `warning: ${event.what}`;
  return event.kind === "ended" ? `ended: ${event.result}` : event.kind;
}

/** A storage that a test can break or watch. */
export interface WatchedStorage {
  readonly storage: SubmissionStorage;
  /** All that was written, in order. */
  readonly puts: StoredSubmission[];
  /** Whether it is full, for everything or for some. */
  readonly medium: { full: boolean | ((record: StoredSubmission) => boolean) };
}

/** Makes one, in memory. */
export function watchedStorage(): WatchedStorage {
  const inner = memoryStorage();
  const puts: StoredSubmission[] = [];
  const medium: WatchedStorage["medium"] = { full: false };
  const storage: SubmissionStorage = {
    ...inner,
    async put(record) {
      const { full } = medium;
      if (typeof full === "function" ? full(record) : full) throw new Error("QuotaExceededError");
      puts.push(structuredClone(record));
      return inner.put(record);
    },
  };
  return { storage, puts, medium };
}
