import { existsSync } from "node:fs";
import { join } from "node:path";
import { type OutageProxy, outageProxy } from "../../test/support/brokers/outage-proxy.ts";
import { findProgram } from "../../test/support/brokers/program.ts";
import { freePort } from "../../test/support/free-port.ts";
import { until } from "../support/until.ts";
import type { Host, Started } from "./host.ts";
import { familyOf, runs, signal, textOf } from "./processes.ts";

/** What Patroni says of a node at `/patroni`. */
export interface NodeStatus {
  readonly state: string;
  readonly role: string;
  readonly timeline?: number;
}

/** One machine of the cluster: Patroni and its PostgreSQL. */
export interface Node {
  readonly name: string;
  /** Of PostgreSQL itself, past the replication link. */
  readonly port: number;
  /** What the other nodes replicate through: WAL can be held back here. */
  readonly link: OutageProxy;
  readonly rest: string;
  /** Starts Patroni, which starts PostgreSQL. */
  start(): void;
  /** `null` where Patroni does not answer. */
  status(): Promise<NodeStatus | null>;
  /** Every node's role, as this one's Patroni reads it from etcd. Raises where it does not answer. */
  roles(): Promise<readonly string[]>;
  /** Whether Patroni holds the leader's lock and its PostgreSQL takes writes. */
  leads(): Promise<boolean>;
  /** SIGKILL to PostgreSQL and Patroni at once: the machine is gone. */
  kill(): Promise<void>;
  /** SIGKILL to Patroni alone: nobody tells PostgreSQL that it leads no more. */
  killPatroni(): Promise<void>;
  /** Whether Patroni runs. */
  isUp(): boolean;
  /** SIGKILL to PostgreSQL alone: Patroni starts it again in its place. */
  killPostgres(): Promise<void>;
  /** SIGSTOP to PostgreSQL alone. */
  freeze(): void;
  thaw(): void;
  close(): Promise<void>;
}

/** Values of the cluster that every node is started with. */
export interface NodeSettings {
  readonly etcd: readonly string[];
  /** The dynamic configuration that the first node writes to etcd. */
  readonly dynamic: object;
}

const DEBIAN_BINARIES = "/usr/lib/postgresql/15/bin";
const GONE_LIMIT_MS = 10_000;
const REST_LIMIT_MS = 1_500;

/** Makes a node; it is started apart. */
export async function makeNode(host: Host, name: string, settings: NodeSettings): Promise<Node> {
  const patroni = findProgram("patroni");
  if (patroni === null) throw new Error("Patroni is not installed (Debian: patroni).");
  const port = await freePort();
  const restPort = await freePort();
  const link = await outageProxy(port);
  const folder = host.folder(name);
  const file = host.write(`${name}.yml`, configuration({ name, folder, port, restPort, link: link.port, settings }));
  const rest = `http://127.0.0.1:${restPort}`;
  let running: Started | null = null;
  const postmaster = () => Number(textOf(join(folder, "data", "postmaster.pid")).split("\n", 1)[0]) || null;
  const ofPostgres = () => livingFamily(postmaster());
  return {
    name,
    port,
    link,
    rest,
    start() {
      running = host.start(name, patroni, [file]);
    },
    status: () => ask<NodeStatus>(`${rest}/patroni`),
    async roles() {
      const cluster = await ask<{ members: { role: string }[] }>(`${rest}/cluster`);
      if (cluster === null) throw new Error(`Patroni of ${name} does not answer.`);
      return cluster.members.map(({ role }) => role);
    },
    leads: async () => (await statusOf(`${rest}/primary`)) === 200,
    async kill() {
      await killAll([...(running === null ? [] : familyOf(running.pid)), ...ofPostgres()]);
      await running?.ended;
      running = null;
    },
    async killPatroni() {
      if (running !== null) await killAll([running.pid]);
      running = null;
    },
    isUp: () => running !== null,
    killPostgres: () => killAll(ofPostgres()),
    freeze: () => signalAll(ofPostgres(), "SIGSTOP"),
    thaw: () => signalAll(ofPostgres(), "SIGCONT"),
    close: () => link.close(),
  };
}

/** The postmaster comes first: once it is stopped it starts no child that we have not seen. A stale pid may be anybody's. */
function livingFamily(postmaster: number | null): number[] {
  if (postmaster === null || !textOf(`/proc/${postmaster}/cmdline`).includes("postgres")) return [];
  return familyOf(postmaster);
}

function signalAll(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) signal(pid, name);
}

async function killAll(pids: readonly number[]): Promise<void> {
  signalAll(pids, "SIGKILL");
  await until("killed processes to be gone", GONE_LIMIT_MS, () => !pids.some(runs));
}

async function ask<Answer>(url: string): Promise<Answer | null> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(REST_LIMIT_MS) });
    return (await answer.json()) as Answer;
  } catch {
    return null;
  }
}

async function statusOf(url: string): Promise<number | null> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(REST_LIMIT_MS) });
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    return null;
  }
}

interface Configured {
  readonly name: string;
  readonly folder: string;
  readonly port: number;
  readonly restPort: number;
  readonly link: number;
  readonly settings: NodeSettings;
}

/** JSON is YAML. Nothing listens outside of the loopback, so that trust is no hole. */
function configuration({ name, folder, port, restPort, link, settings }: Configured): string {
  const binaries = existsSync(DEBIAN_BINARIES) ? { bin_dir: DEBIAN_BINARIES } : {};
  const user = (username: string) => ({ username, password: username });
  const everybody = ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"];
  return JSON.stringify({
    scope: "oncekey",
    name,
    restapi: { listen: `127.0.0.1:${restPort}`, connect_address: `127.0.0.1:${restPort}` },
    etcd3: { hosts: settings.etcd.join(",") },
    bootstrap: { dcs: settings.dynamic, initdb: [{ encoding: "UTF8" }, { locale: "C" }], pg_hba: everybody },
    postgresql: {
      listen: `127.0.0.1:${port}`,
      // The others come through the link; Patroni itself takes the direct way.
      connect_address: `127.0.0.1:${link}`,
      data_dir: join(folder, "data"),
      ...binaries,
      pgpass: join(folder, "pgpass"),
      authentication: { superuser: user("postgres"), replication: user("replicator"), rewind: user("rewinder") },
      parameters: { unix_socket_directories: "" },
    },
    watchdog: { mode: "off" },
  });
}
