import { findProgram } from "../../test/support/brokers/program.ts";
import { freePort } from "../../test/support/free-port.ts";
import { until } from "../support/until.ts";
import type { Host } from "./host.ts";

const MEMBERS = [1, 2, 3];
const START_LIMIT_MS = 60_000;

/** Starts three members of etcd, which keep who leads; gives their client addresses once they have a leader of their own. */
export async function startEtcd(host: Host): Promise<string[]> {
  const command = findProgram("etcd");
  if (command === null) throw new Error("etcd is not installed (Debian: etcd-server).");
  const members: { name: string; client: number; peer: number }[] = [];
  for (const n of MEMBERS) members.push({ name: `etcd${n}`, client: await freePort(), peer: await freePort() });
  const url = (port: number) => `http://127.0.0.1:${port}`;
  const initial = members.map(({ name, peer }) => `${name}=${url(peer)}`).join(",");
  for (const { name, client, peer } of members) {
    const flags = {
      name,
      "data-dir": `${host.folder(name)}/data`,
      "listen-client-urls": url(client),
      "advertise-client-urls": url(client),
      "listen-peer-urls": url(peer),
      "initial-advertise-peer-urls": url(peer),
      "initial-cluster": initial,
      "log-level": "warn",
    };
    host.start(
      name,
      command,
      Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, value]),
    );
  }
  await until("etcd to have a leader", START_LIMIT_MS, async () => {
    const healths = await Promise.all(members.map(({ client }) => isHealthy(url(client))));
    return healths.every(Boolean);
  });
  return members.map(({ client }) => `127.0.0.1:${client}`);
}

async function isHealthy(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/health`, { signal: AbortSignal.timeout(1_000) });
    return ((await answer.json()) as { health: string }).health === "true";
  } catch {
    return false;
  }
}
