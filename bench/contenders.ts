import { fileURLToPath } from "node:url";
import type { Contender, Slice } from "./measure.ts";
import type { Program } from "./program.ts";
import type { ApiAsk, ApiSettings, ApiUsage } from "./programs/api.ts";
import type { KeyChoice, LoadAnswer, LoadAsk } from "./programs/clients.ts";
import type { World } from "./world.ts";

/** What the clients do, and how long the handler's answers are. */
export interface Load {
  readonly clients: number;
  readonly keys: KeyChoice;
  readonly answerBytes: number;
}

/** A contender whose process is open. */
export interface OpenContender extends Contender {
  /** Of its database. */
  readonly url: string;
  /** What its process used at the most; `null` where it has none of ours. */
  usage(): Promise<ApiUsage | null>;
  close(): Promise<void>;
}

/** What contenders share. */
export interface Field {
  readonly world: World;
  readonly clients: Program<LoadAsk>;
  readonly redisPort: number | null;
}

/** Connections of every variant's pool: enough for each of the default number of clients. */
const POOL_SIZE = 32;

const PEERS = fileURLToPath(new URL("./peers/package.json", import.meta.url));

/** Starts a variant in a process and on a database of its own. */
export async function startApi(
  { world, redisPort }: Pick<Field, "world" | "redisPort">,
  variant: string,
  answerBytes: number,
): Promise<{ api: Program<ApiAsk>; port: number; url: string }> {
  const url = await world.database();
  const api = world.programs.start<ApiAsk>("api");
  const settings: ApiSettings = { variant, url, poolSize: POOL_SIZE, answerBytes, redisPort, peers: PEERS };
  const { port } = await api.ask<{ port: number }>({ kind: "open", settings });
  return { api, port, url };
}

/** A variant under the clients' load, over HTTP. */
export async function servedContender(field: Field, variant: string, load: Load): Promise<OpenContender> {
  const { api, port, url } = await startApi(field, variant, load.answerBytes);
  const keys = variant === "read" ? "none" : load.keys;
  return {
    ...openContender(variant, api, url),
    slice: (forMs) => withUsage(api, () => field.clients.ask<LoadAnswer>({ port, clients: load.clients, keys, forMs })),
  };
}

/** A variant called in its own process as often at a time as there are clients: what is compared with pgbench. */
export async function calledContender(field: Field, variant: string, load: Load): Promise<OpenContender> {
  const { api, url } = await startApi(field, variant, load.answerBytes);
  return {
    ...openContender(`${variant}-called`, api, url),
    slice: (forMs) => withUsage(api, () => api.ask<LoadAnswer>({ kind: "call", callers: load.clients, forMs })),
  };
}

function openContender(name: string, api: Program<ApiAsk>, url: string): Omit<OpenContender, "slice"> {
  return {
    name,
    url,
    usage: () => api.ask<ApiUsage>({ kind: "usage" }),
    async close() {
      await api.ask({ kind: "close" });
      await api.end();
    },
  };
}

async function withUsage(api: Program<ApiAsk>, work: () => Promise<LoadAnswer>): Promise<Slice> {
  const before = await api.ask<ApiUsage>({ kind: "usage" });
  const done = await work();
  const after = await api.ask<ApiUsage>({ kind: "usage" });
  return { ...done, cpuMs: after.cpuMs - before.cpuMs };
}
