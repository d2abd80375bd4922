/**
 * Kills relays at random while they deliver, and checks that nothing is lost, doubled or out of order.
 *
 *   npm run lab:outbox -- [--messages 10000] [--kills 100] [--relays 3]
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
import { emptyTally, tallyLine } from "../scripts/tally.ts";
import { startTestServer, type TestServer } from "../test/support/postgres-server.ts";
import { type Fleet, fleetOf, type Member } from "./support/fleet.ts";
import { checkCanaries } from "./support/outbox-canary.ts";
import {
  type Check,
  type CheckedWorld,
  checkDeliveries,
  checkPoisonedOrder,
  equalCheck,
} from "./support/outbox-checks.ts";
import { type Sent, sendAll } from "./support/outbox-sender.ts";
import type { RelaySettings, SinkSettings } from "./support/outbox-world.ts";

interface CampaignOptions {
  readonly messages: number;
  readonly kills: number;
  readonly relays: number;
}

const POISONED_ORDER = "poisoned";
const POISONED_MESSAGES = 10;
const DEADLINE_MS = 900_000;
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
}

const say = (line: string) => void process.stdout.write(`${line}\n`);
const sleep = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));
const PROGRAMS = {
  "outbox-relay": fileURLToPath(new URL("./support/outbox-relay.ts", import.meta.url)),
  "outbox-sink": fileURLToPath(new URL("./support/outbox-sink.ts", import.meta.url)),
};

function readOptions(): CampaignOptions {
  const option = { type: "string" } as const;
  const { values } = parseArgs({ options: { messages: option, kills: option, relays: option } });
  const numberOf = (text: string | undefined, otherwise: number) => {
    const value = text === undefined ? otherwise : Number(text);
    if (!Number.isInteger(value) || value < 1)
      throw new Error("--messages, --kills and --relays are whole numbers from 1");
    return value;
  };
  return {
    messages: numberOf(values.messages, 10_000),
    kills: numberOf(values.kills, 100),
    relays: numberOf(values.relays, 3),
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
    await until(() => progress.effects >= threshold, "the relays to get on");
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

async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const endAtMs = performance.now() + DEADLINE_MS;
  while (!(await condition())) {
    if (performance.now() > endAtMs) throw new Error(`Waited too long for ${what}.`);
    await sleep(5);
  }
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
  await until(settled, "the outbox to drain").catch((error: unknown) => say(String(error)));
  say(`${violence.kills} relays killed, ${violence.pauses} put to sleep through their leases; ${seconds()} s`);
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
  say(`${arrivals} deliveries of ${messages} messages: ${arrivals - messages} came again`);
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
  await until(() => lab.progress.effects >= expected, "the poisoned order to drain").catch((error: unknown) =>
    say(String(error)),
  );
  return checkPoisonedOrder(world);
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
    const checks = await campaign({ options, fleet, sender, sink, relay, progress });
    for (const { name, passed, found } of checks) say(`${passed ? "ok  " : "FAIL"} ${name}${found && `: ${found}`}`);
    const failed = checks.filter(({ passed }) => !passed).length;
    say(tallyLine({ ...emptyTally, passed: checks.length - failed, failed }));
    return failed === 0 ? 0 : 1;
  } finally {
    await fleet.close();
    await Promise.all([sender.end(), sink.end()]);
    await server.close();
  }
}

process.exitCode = await main();
