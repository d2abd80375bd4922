import { PGlite } from "@electric-sql/pglite";
import { createOncekey } from "oncekey";
import { fromPGlite } from "oncekey/drivers/pglite";
import { migrate, postgresStore } from "oncekey/postgres";
import { createLedger, createMeter, eventId, type Meter } from "./meter.ts";
import { createProducer, type Deliver, type Producer } from "./producer.ts";

// Usage metering in one command, on a PostgreSQL inside this process: three gateways count calls over a bad network, one
// of them is restarted while its old self still sends, one event is corrected. The ledger must add up to what was counted.
//
//   node --conditions=oncekey-source --import tsx examples/metering/start.ts

const TENANT = "acme";
const METER = "api_calls";
const EVENTS = 40;

/** Repeats each third event, and loses each fifth answer after the event was recorded. */
function badNetwork(meter: Meter): Deliver {
  let sent = 0;
  return async (event) => {
    const result = await meter.record(event);
    sent++;
    if (sent % 3 === 0) return meter.record(event);
    if (sent % 5 === 0) throw new Error("the answer was lost");
    return result;
  };
}

async function countCalls(producer: Producer, events: number): Promise<bigint> {
  let sum = 0n;
  for (let call = 1; call <= events; call++) {
    const quantity = BigInt(1 + (call % 7));
    if ((await producer.count(quantity)) === "fenced") break;
    sum += quantity;
  }
  return sum;
}

async function main(): Promise<boolean> {
  const db = await PGlite.create();
  const driver = fromPGlite(db);
  await migrate(driver);
  await createLedger((sql) => db.exec(sql));
  const once = createOncekey({ store: postgresStore(driver) });
  await once.start();
  const meter = createMeter(once, db);
  const deliver = badNetwork(meter);
  const gateway = (producer: string, epoch: bigint) =>
    createProducer({ tenant: TENANT, producer, epoch, meter: METER }, deliver);

  const gateways = [gateway("gateway-1", 0n), gateway("gateway-2", 0n), gateway("gateway-3", 0n)] as const;
  const counted = (await Promise.all(gateways.map((one) => countCalls(one, EVENTS)))).reduce((a, b) => a + b, 0n);

  const heir = gateway("gateway-1", 1n);
  const inherited = await countCalls(heir, EVENTS);
  // The old instance wakes up: its events were never promised to anybody, and must not count any more.
  const zombie = await gateways[0].count(1_000_000n);

  const wrong = { tenant: TENANT, producer: "gateway-2", epoch: 0n, sequence: 0n };
  const correction = { tenant: TENANT, producer: "corrections", epoch: 0n, sequence: 0n, meter: METER };
  await meter.record({ ...correction, quantity: -2n, corrects: eventId(wrong), occurredAt: new Date() });

  const total = await meter.total(TENANT, METER);
  const expected = counted + inherited - 2n;
  report([...gateways, heir], { total, expected, zombie });
  await once.close();
  await db.close();
  return total === expected && zombie === "fenced";
}

function report(
  producers: readonly Producer[],
  { total, expected, zombie }: { total: bigint; expected: bigint; zombie: string },
): void {
  const sum = (name: keyof Producer["counts"]) => producers.reduce((all, { counts }) => all + counts[name], 0);
  console.log(`  events recorded at their first arrival  ${sum("accepted")}`);
  console.log(`  acknowledged as duplicates              ${sum("duplicates")}`);
  console.log(`  sent again after a lost answer          ${sum("retried")}`);
  console.log(`  an old instance that woke up            ${zombie}`);
  console.log(`  the ledger says ${total}, the gateways counted ${expected}`);
  console.log(total === expected ? "  Every event counted once." : "  THE LEDGER IS WRONG.");
}

main().then(
  (right) => process.exit(right ? 0 : 1),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : String(error));
    process.exit(1);
  },
);
