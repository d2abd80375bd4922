import { readFile } from "node:fs/promises";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { fromPg } from "oncekey/drivers/pg";
import { migrate } from "oncekey/postgres";
import pg from "pg";
import { type Ledger, openLedger } from "../../examples/payments/psp/ledger.ts";
import { createProvider } from "../../examples/payments/psp/provider.ts";
import { createPspServer } from "../../examples/payments/psp/server.ts";
import type { PspRecover } from "../../examples/payments/settings.ts";
import type { Fleet, Member } from "../support/fleet.ts";
import type { Cluster } from "./cluster.ts";
import type { Host } from "./host.ts";
import type { Side } from "./load.ts";
import type { ApiSettings, Delivered } from "./settings.ts";

/** The applications on the cluster: APIs, providers, and what their relays have delivered. */
export interface World {
  readonly sides: readonly Side[];
  readonly ledgers: readonly Ledger[];
  readonly delivered: readonly Delivered[];
  close(): Promise<void>;
}

/**
 * Each with a database of its own, since the sweeper of any API goes on with whatever its database holds, at the API's own
 * provider. One tenant's provider dedupes; the other's does not, so its calls are found or cancelled.
 */
const TENANTS: readonly { tenant: string; token: string; dedupe: boolean; pspRecover: PspRecover }[] = [
  { tenant: "acme", token: "sk_test_acme", dedupe: true, pspRecover: "dedupes" },
  { tenant: "globex", token: "sk_test_globex", dedupe: false, pspRecover: "find_cancel" },
];
const APIS_EACH = 2;

/** Makes the databases and starts everything on them: four API processes, two providers. */
export async function openWorld(parts: { host: Host; cluster: Cluster; fleet: Fleet; name: string }): Promise<World> {
  const { host, cluster, fleet, name } = parts;
  const servers: Server[] = [];
  const members: Member[] = [];
  const ledgers: Ledger[] = [];
  const sides: Side[] = [];
  const delivered: Delivered[] = [];
  for (const { tenant, token, dedupe, pspRecover } of TENANTS) {
    const database = `${name}_${tenant}`;
    await makeDatabase(cluster, database);
    const ledger = openLedger(host.folder(database));
    ledgers.push(ledger);
    const provider = createProvider(ledger);
    provider.behave({ dedupe });
    const psp = await listen(createPspServer(provider), servers);
    const settings: ApiSettings = { databaseUrl: cluster.urlOf(database), pspUrl: psp, pspRecover };
    const apis: string[] = [];
    for (let api = 0; api < APIS_EACH; api++) {
      const member = await fleet.start("api", settings, (told) => delivered.push(told.delivered as Delivered));
      members.push(member);
      apis.push(String(member.said));
    }
    sides.push({ database, tenant, token, apis });
  }
  return {
    sides,
    ledgers,
    delivered,
    async close() {
      for (const member of members) await member.kill();
      for (const server of servers) {
        server.closeAllConnections();
        server.close();
      }
    },
  };
}

async function listen(server: Server, servers: Server[]): Promise<string> {
  servers.push(server);
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function makeDatabase(cluster: Cluster, database: string): Promise<void> {
  const leader = await cluster.leader();
  await cluster.ask(leader, `CREATE DATABASE ${database}`);
  // Past the router, which cuts whatever it leads when Patroni is slow to say who leads.
  const pool = new pg.Pool({ host: "127.0.0.1", user: "postgres", port: leader.port, database, max: 2 });
  pool.on("error", () => {});
  try {
    await migrate(fromPg(pool));
    await pool.query(await readFile(SCHEMA, "utf8"));
  } finally {
    await pool.end();
  }
}

const SCHEMA = fileURLToPath(new URL("../../examples/payments/schema.sql", import.meta.url));
