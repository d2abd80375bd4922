import {
  type Client,
  type ClientEvent,
  type ClientOptions,
  createClient,
  memoryStorage,
  type SubmissionResult,
} from "oncekey/client";
import { expect } from "vitest";
import { answer, type HostileServer, hostileServer, type Step } from "../../support/hostile-server.ts";

/** What the user asks for. */
export const CONTENT = { amount: 1200, note: "für Zoë" };
/** A client before a hostile server. */
export interface HostileWorld extends HostileServer {
  readonly client: Client;
  readonly storage: ReturnType<typeof memoryStorage>;
  readonly events: ClientEvent[];
  /** How long each pause was asked to be. Pauses pass at once, on a clock that they move. */
  readonly pauses: number[];
  /** Moves that clock, which is the wall clock and the steady one. */
  pass(ms: number): void;
  /** A client as after a restart: another one over the same storage. */
  restarted(options?: Partial<ClientOptions>): Client;
  submit(): Promise<SubmissionResult>;
}

/** Makes one; its submissions are kept in memory. */
export async function hostileWorld(options: Partial<ClientOptions> = {}): Promise<HostileWorld> {
  const server = await hostileServer();
  const storage = memoryStorage();
  const events: ClientEvent[] = [];
  const pauses: number[] = [];
  let clockMs = 1_800_000_000_000;
  const pass = (ms: number) => {
    clockMs += ms;
  };
  const made = (more: Partial<ClientOptions> = {}) =>
    createClient({
      storage,
      now: () => clockMs,
      monotonicMs: () => clockMs,
      random: () => 0.999,
      pause: async (ms) => {
        pauses.push(ms);
        pass(ms);
      },
      onEvent: (event) => void events.push(event),
      ...options,
      ...more,
    });
  const client = made();
  const submit = () => client.submit("order-42", { url: `${server.url}/things`, json: CONTENT });
  return { ...server, client, storage, events, pauses, pass, restarted: made, submit };
}

/** What holds whatever the server did: one key, one set of bytes, at most one execution. */
export function expectOneAction({ seen, executed }: HostileServer): void {
  expect(new Set(seen.map(({ key }) => key)).size).toBe(1);
  expect(seen[0]?.key).toMatch(/^[0-9a-f-]{36}$/);
  expect(new Set(seen.map(({ method, path, body }) => `${method} ${path} ${body}`)).size).toBe(1);
  expect(executed.length).toBeLessThanOrEqual(1);
}

/** Answers a problem with these members. */
export function problem(status: number, members: unknown): Step {
  return answer(status, { "content-type": "application/problem+json" }, JSON.stringify(members));
}
