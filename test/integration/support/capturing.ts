import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BodyStore, createOncekey, type Oncekey, type Operation, ok } from "oncekey";
import { fileBodyStore } from "oncekey/bodies/file";
import { memoryStore } from "oncekey/memory";
import { onTestFinished } from "vitest";
import { identityOf } from "../../../src/core/identity.ts";

/** Operations to bind, over a memory store, and what was told to the instance's `onError`. */
export interface Bindable {
  readonly write: Operation<"transaction">;
  readonly wrap: Operation<"capture">;
  readonly seen: unknown[];
  readonly errors: unknown[];
  /** The entry's state of `wrap` under the key `k`. */
  state(): Promise<string | undefined>;
}

export const scope = () => ({ tenant: "acme", client: null });

/** Defines a transaction that answers with its input, which it also notes in `seen`, and a capture. */
export function writeAndWrap<Tx>(once: Oncekey<Tx>) {
  const seen: unknown[] = [];
  const write = once.transaction({
    name: "a.write",
    version: 1,
    async run({ input }) {
      seen.push(input.body);
      return ok(input.body);
    },
  });
  const reconcile = async () => ({ kind: "unknown", why: "never asked" }) as const;
  return { write, wrap: once.capture({ name: "a.wrap", version: 1, reconcile }), seen };
}

/** The two operations on a started instance of their own. */
export async function bindable(): Promise<Bindable> {
  const bodyStore = await longBodies();
  const store = memoryStore();
  const errors: unknown[] = [];
  const once = createOncekey({ store, bodyStore, onError: (error) => void errors.push(error) });
  const defined = writeAndWrap(once);
  await once.start();
  const { id } = identityOf(scope(), "a.wrap", "k");
  return { ...defined, errors, state: async () => (await store.read(id))?.state };
}

/** A body store in a directory that is removed when the test ends: replays of long answers are streamed from it. */
export async function longBodies(): Promise<BodyStore> {
  const directory = await mkdtemp(join(tmpdir(), "oncekey-long-bodies-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return fileBodyStore({ directory });
}

/** Serves a listener until the test ends; resolves with its URL. */
export async function served(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Posts JSON under the key `k`. */
export function post(url: string, body: BodyInit = '{"a":1}', headers: Record<string, string> = {}): Promise<Response> {
  const all = { "idempotency-key": "k", "content-type": "application/json", ...headers };
  return fetch(url, {
    method: "POST",
    body,
    headers: all,
    ...(body instanceof ReadableStream ? { duplex: "half" } : {}),
  });
}
