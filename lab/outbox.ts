/**
 * Kills relays at random while they deliver, and checks that nothing is lost, doubled or out of order.
 *
 *   npm run lab:outbox -- [--messages 10000] [--kills 100] [--relays 3] [--proof]
 *
 * The sender's transactions (some rolled back, some committing late), the relays and the consumer are processes and
 * databases of their own; the consumer takes messages in by the inbox. Besides the kills, some relays sleep through their
 * leases. Ends with "N passed, N failed".
 */

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { fromPg } from "oncekey/drivers/pg";
import { discardMessages, listMessages, migrate } from "oncekey/postgres";
import pg from "pg";
import { startTestServer, type TestServer } from "../test/support/postgres-server.ts";
import { type Check, equalCheck } from "./support/check.ts";
import { runCommand, wholeNumber } from "./support/command.ts";
import { type Fleet, fleetOf, type Member } from "./support/fleet.ts";
import { checkCanaries } from "./support/outbox-canary.ts";
import { type CheckedWorld, checkDeliveries, checkPoisonedOrder } from "./support/outbox-checks.ts";
import { type Sent, sendAll } from "./support/outbox-sender.ts";
import type { RelaySettings, SinkSettings } from "./support/outbox-world.ts";
import { type Proof, report, say } from "./support/report.ts";
import { until } from "./support/until.ts";

interface CampaignOptions {
  readonly messages: number;
  readonly kills: number;
  readonly relays: number;
  /** Whether the figures are to be stored for docs/proof.md. */
  readonly proof: boolean;
}

const POISONED_ORDER = "poisoned";
const POISONED_MESSAGES = 10;
const DEADLINE_MS = 900_000;
/** A relay is killed in the middle of its work, so what it does is looked at often. */
const LOOK_EVERY_MS = 5;
/** One pause for so many kills. */
const KILLS_PER_PAUSE = 10;
const TIMES = { leaseMs: 1_500, timeoutMs: 5_000, intervalMs: 50, longestPauseMs: 1_000, maxAttempts: 10 };
const SINK_TABLES = [
  "CREATE TABLE arrival (id text NOT NULL, n integer NOT NULL, rolled_back boolean NOT NULL)",
  "CREATE TABLE effect (seq bigint GENERATED ALWAYS AS IDENTITY, id text NOT NULL, n integer NOT NULL, order_by text, place integer)",
];

interface Lab {
  readonly options: CampaignOptions;
  readonly fleet: Fleet;
  readonly sender: pg.Pool;
  readonly sink: pg.Pool;
  readonly relay: RelaySettings;
  /** Effects so far, as the sink tells it. */
  readonly progress: { effects: number };
  /** What was tried, for the end. */
  readonly figures: (readonly [string, number])[];
}

const sleep = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));
const PROGRAMS = {
  "outbox-relay": fileURLToPath(new URL("./support/outbox-relay.ts", import.meta.url)),
  "outbox-sink": fileURLToPath(new URL("./support/outbox-sink.ts", import.meta.url)),
};

function readOptions(): CampaignOptions {
  const option = { type: "string" } as const;
  const { values } = parseArgs({
    options: { messages: option, kills: option, relays: option, proof: { type: "boolean" } },
  });
  return {
    messages: wholeNumber("--messages", values.messages ?? 10_000),
    kills: wholeNumber("--kills", values.kills ?? 100),
    relays: wholeNumber("--relays", values.relays ?? 3),
    proof: values.proof === true,
  };
}

async function database(server: TestServer, name: string, tables: readonly string[], max: number): Promise<pg.Pool> {
  const admin = new pg.Pool({ connectionString: server.url, max: 1 });
  await admin.query(`CREATE DATABASE ${name}`);
  await admin.end();
  const pool = new pg.Pool({ connectionString: server.urlOf(name), max });
  pool.on("error", () => {});
  await migrate(fromPg(pool));
  for (const table of tables) await pool.query(table);
  return pool;
}

/** Kills a relay each time another share of the messages had its effect, and starts a new one in its place. */
async function killRelays(lab: Lab): Promise<{ kills: number; pauses: number }> {
  const { options, fleet, progress } = lab;
  const start = () => fleet.start("outbox-relay", lab.relay);
  const relays: Member[] = await Promise.all(Array.from({ length: options.relays }, start));
  const pauses: Promise<void>[] = [];
  for (let kill = 1; kill <= options.kills; kill++) {
    // The last kill comes before the last messages, or it would meet a relay with nothing to do.
    const threshold = (options.messages * 0.95 * kill) / (options.kills + 1);
    await until("the relays to get on", DEADLINE_MS, () => progress.effects >= threshold, LOOK_EVERY_MS);
    await sleep(Math.random() * 20);
    const victim = Math.floor(Math.random() * relays.length);
    if (kill % KILLS_PER_PAUSE === 0) {
      pauses.push((relays[(victim + 1) % relays.length] as Member).freezeMs(TIMES.leaseMs * 2));
    }
    await relays[victim]?.kill();
    relays[victim] = await start();
  }
  await Promise.all(pauses);
  return { kills: options.kills, pauses: pauses.length };
}

/** How many messages are pending in other orders than the poisoned one, and how many are dead. */
async function openMessages({ sender }: Lab): Promise<{ pending: number; dead: number; behindPoison: number }> {
  const { rows } = await sender.query(
    `SELECT count(*) FILTER (WHERE state = 'pending' AND order_by IS DISTINCT FROM $1)::int AS pending,
            count(*) FILTER (WHERE state = 'pending' AND order_by = $1)::int AS "behindPoison",
            count(*) FILTER (WHERE state = 'dead')::int AS dead
     FROM oncekey.outbox WHERE state <> 'delivered'`,
    [POISONED_ORDER],
  );
  return rows[0] as { pending: number; dead: number; behindPoison: number };
}

async function campaign(lab: Lab): Promise<Check[]> {
  const startedAtMs = performance.now();
  const seconds = () => ((performance.now() - startedAtMs) / 1_000).toFixed(1);
  const sending = sendAll({
    pool: lab.sender,
    messages: lab.options.messages,
    poisonedOrder: POISONED_ORDER,
    poisonedMessages: POISONED_MESSAGES,
  });
  const [sent, violence] = await Promise.all([sending, killRelays(lab)]);
  say(`sent ${sent.committed.length} messages, ${sent.rolledBack} rolled back; ${seconds()} s`);
  const settled = async () => {
    const { pending, dead } = await openMessages(lab);
    if (pending === 0 && dead === 1) return true;
    await sleep(100);
    return false;
  };
  // What did not come in time is found by the checks, one by one.
  await until("the outbox to drain", DEADLINE_MS, settled, LOOK_EVERY_MS).catch((error: unknown) => say(String(error)));
  say(`${violence.kills} relays killed, ${violence.pauses} put to sleep through their leases; ${seconds()} s`);
  lab.figures.push(
    ["messages sent", sent.committed.length],
    ["transactions rolled back", sent.rolledBack],
    ["relays killed", violence.kills],
    ["relays put to sleep through their leases", violence.pauses],
  );
  const world: CheckedWorld = { sender: lab.sender, sink: lab.sink, sent, poisonedOrder: POISONED_ORDER };
  const checks = [...(await checkDeliveries(world)), ...(await checkPoison(lab)), await checkCanaries(world, lab.sink)];
  return [...checks, await checkAfterDiscard(lab, world, sent)];
}

async function checkPoison(lab: Lab): Promise<Check[]> {
  const { pending, dead, behindPoison } = await openMessages(lab);
  const { rows } = await lab.sink.query(
    "SELECT count(*)::int AS arrivals, count(DISTINCT n)::int AS messages FROM arrival WHERE n >= $1",
    [POISONED_MESSAGES],
  );
  const { arrivals, messages } = rows[0] as { arrivals: number; messages: number };
  lab.figures.push(["deliveries", arrivals], ["of them again", arrivals - messages]);
  return [
    equalCheck("nothing waits but the poisoned order", pending, 0),
    equalCheck("the poison message alone is a dead letter", dead, 1),
    equalCheck("what was sent behind it waits", behindPoison, POISONED_MESSAGES - 1),
    equalCheck("the kills met deliveries under way (else this campaign shows nothing)", arrivals > messages, true),
  ];
}

async function checkAfterDiscard(lab: Lab, world: CheckedWorld, sent: Sent): Promise<Check> {
  const driver = fromPg(lab.sender);
  const poison = await listMessages(driver, { state: "dead" });
  await discardMessages(driver, { ids: poison.map(({ id }) => id) });
  const expected = sent.committed.length - 1;
  await until("the poisoned order to drain", DEADLINE_MS, () => lab.progress.effects >= expected, LOOK_EVERY_MS).catch(
    (error: unknown) => say(String(error)),
  );
  return checkPoisonedOrder(world);
}

function proofOf({ options: { messages, kills, relays }, figures }: Lab): Proof {
  const command = `npm run lab:outbox -- --messages ${messages} --kills ${kills} --relays ${relays}`;
  return { campaign: "outbox", command, figures };
}

async function main(): Promise<number> {
  const options = readOptions();
  const server = await startTestServer();
  const fleet = await fleetOf(PROGRAMS);
  const sender = await database(server, "sender", ["CREATE TABLE sent (n integer PRIMARY KEY)"], 30);
  const sink = await database(server, "sink", SINK_TABLES, 4);
  try {
    const progress = { effects: 0 };
    const settings: SinkSettings = { url: server.urlOf("sink"), slowMs: 20, poisonedOrder: POISONED_ORDER };
    const consumer = await fleet.start("outbox-sink", settings, ({ effects }) => {
      progress.effects = Number(effects);
    });
    const relay: RelaySettings = { url: server.urlOf("sender"), sinkUrl: String(consumer.said), ...TIMES };
    const lab: Lab = { options, fleet, sender, sink, relay, progress, figures: [] };
    const checks = await campaign(lab);
    return await report(proofOf(lab), checks, { write: options.proof });
  } finally {
    await fleet.close();
    await Promise.all([sender.end(), sink.end()]);
    await server.close();
  }
}

await runCommand("npm run lab:outbox -- [--messages 10000] [--kills 100] [--relays 3] [--proof]", main);
