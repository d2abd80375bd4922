import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { type OutageProxy, outageProxy } from "../../test/support/brokers/outage-proxy.ts";
import { until } from "../support/until.ts";
import { startEtcd } from "./etcd.ts";
import type { Host } from "./host.ts";
import { makeNode, type Node } from "./node.ts";

/** How replication answers for a commit. */
export type Mode = "synchronous" | "asynchronous";

/** Three nodes of which one leads, and a router that leads to it. */
export interface Cluster {
  readonly nodes: readonly Node[];
  /** Through the router, as applications connect. */
  urlOf(database: string): string;
  /** Waits for a node that leads; `not`: another one than that. */
  leader(not?: Node): Promise<Node>;
  /** Waits until every other node follows the leader on its timeline, and (synchronous) one of them confirms commits. */
  whole(): Promise<void>;
  /** Hands the lead to another node, in order; gives that one. */
  switchOver(): Promise<Node>;
  setMode(mode: Mode): Promise<void>;
  /** One statement on a node, past the router. Default database: `postgres`. */
  ask(node: Node, sql: string, database?: string): Promise<Record<string, unknown>[]>;
  close(): Promise<void>;
}

/** Patroni refuses a shorter `ttl`: until then a leader that is gone may come back. */
const TIMES = { ttl: 20, loop_wait: 2, retry_timeout: 3 };
/** How far behind the last known position a candidate may be, in bytes. Patroni's default of 1 MiB would hide losses. */
const MAXIMUM_LAG_BYTES = 67_108_864;
const ROUTER_PAUSE_MS = 150;
/** Looks in a row that find nobody leading before the router leads nowhere: HAProxy's `fall`. A busy machine misses one. */
const ROUTER_FALL = 3;
const LIMIT_MS = 120_000;

const modeSettings = (mode: Mode) => ({
  synchronous_mode: mode === "synchronous",
  synchronous_mode_strict: mode === "synchronous",
});

/** Starts etcd, three nodes and the router. About 20 s. */
export async function startCluster(host: Host, mode: Mode): Promise<Cluster> {
  const etcd = await startEtcd(host);
  const dynamic = {
    ...TIMES,
    ...modeSettings(mode),
    maximum_lag_on_failover: MAXIMUM_LAG_BYTES,
    postgresql: { use_pg_rewind: true, parameters: { max_connections: 100, shared_buffers: "64MB" } },
  };
  const nodes: Node[] = [];
  for (const name of ["node1", "node2", "node3"]) nodes.push(await makeNode(host, name, { etcd, dynamic }));
  const router = await startRouter(nodes);
  const cluster = clusterOf(nodes, router, { mode });
  const [first, ...others] = nodes;
  first?.start();
  await cluster.leader();
  for (const node of others) node.start();
  await cluster.whole();
  return cluster;
}

function clusterOf(nodes: readonly Node[], router: Router, current: { mode: Mode }): Cluster {
  const leader = (not?: Node) =>
    until("a node to lead", LIMIT_MS, async () => {
      const led = router.leader();
      return led !== null && led !== not && (await isWritable(led)) ? led : null;
    });
  return {
    nodes,
    urlOf: (database) => `postgres://postgres@127.0.0.1:${router.port}/${database}`,
    leader,
    whole: () =>
      until("all nodes to follow", LIMIT_MS, async () => {
        const led = router.leader();
        return led !== null && isWhole(nodes, led, current.mode).catch(() => false);
      }).then(() => {}),
    async switchOver() {
      const from = await leader();
      const body = JSON.stringify({ leader: from.name });
      const answer = await fetch(`${from.rest}/switchover`, { method: "POST", body });
      if (!answer.ok) throw new Error(`Patroni refused the switchover: ${await answer.text()}`);
      return leader(from);
    },
    async setMode(mode) {
      const led = await leader();
      const answer = await fetch(`${led.rest}/config`, { method: "PATCH", body: JSON.stringify(modeSettings(mode)) });
      if (!answer.ok) throw new Error(`Patroni refused the mode: ${await answer.text()}`);
      current.mode = mode;
    },
    ask,
    async close() {
      await router.close();
      for (const node of nodes) await node.close();
    },
  };
}

const ADMIN = { host: "127.0.0.1", user: "postgres", connectionTimeoutMillis: 2_000 };

/** On a busy machine a node that is up may not take a connection in time: asked again, since nothing was said yet. */
const CONNECT_LIMIT_MS = 30_000;

async function ask(node: Node, sql: string, database = "postgres"): Promise<Record<string, unknown>[]> {
  let refused: unknown;
  const client = await until(`${node.name} to take a connection`, CONNECT_LIMIT_MS, () =>
    connectTo(node, database).catch((error: unknown) => {
      refused = error;
      return null;
    }),
  ).catch((late: Error) => {
    throw new Error(late.message, { cause: refused });
  });
  return onceAsked(client, sql);
}

async function connectTo(node: Node, database: string): Promise<pg.Client> {
  const client = new pg.Client({ ...ADMIN, database, port: node.port });
  client.on("error", () => {});
  await client.connect();
  return client;
}

async function onceAsked(client: pg.Client, sql: string): Promise<Record<string, unknown>[]> {
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

async function isWritable(node: Node): Promise<boolean> {
  const query = "SELECT pg_is_in_recovery() AS follows";
  const asked = connectTo(node, "postgres").then((client) => onceAsked(client, query));
  const [row] = await asked.catch(() => []);
  return row?.follows === false;
}

async function isWhole(nodes: readonly Node[], leader: Node, mode: Mode): Promise<boolean> {
  const statuses = await Promise.all(nodes.map((node) => node.status()));
  const timelines = new Set(statuses.map((status) => (status?.state === "running" ? status.timeline : null)));
  if (timelines.size !== 1 || timelines.has(undefined)) return false;
  const followers = await ask(leader, "SELECT state, sync_state FROM pg_stat_replication");
  const streaming = followers.filter(({ state }) => state === "streaming");
  const confirming = streaming.filter(({ sync_state }) => sync_state === "sync").length;
  return streaming.length === nodes.length - 1 && confirming === (mode === "synchronous" ? 1 : 0);
}

interface Router {
  readonly port: number;
  leader(): Node | null;
  close(): Promise<void>;
}

/**
 * Leads connections to the node that says it leads, as HAProxy does with Patroni's health checks: none leads, none is let
 * in; another leads, and all connections to the one before are cut. Whoever led is believed to until it was missed
 * {@link ROUTER_FALL} times: one slow answer is no failover.
 */
async function startRouter(nodes: readonly Node[]): Promise<Router> {
  let led: Node | null = null;
  let missed = 0;
  let stopped = false;
  const proxy: OutageProxy = await outageProxy(() => led?.port ?? 0);
  proxy.away();
  const look = async () => {
    const leading = await Promise.all(nodes.map((node) => node.leads()));
    const now = nodes[leading.indexOf(true)] ?? null;
    missed = now === null ? missed + 1 : 0;
    if (now === led || (now === null && missed < ROUTER_FALL)) return;
    led = now;
    if (now === null) proxy.away();
    else proxy.back();
  };
  const looking = (async () => {
    for (; !stopped; await sleep(ROUTER_PAUSE_MS)) await look();
  })();
  return {
    port: proxy.port,
    leader: () => led,
    async close() {
      stopped = true;
      await looking;
      await proxy.close();
    },
  };
}
