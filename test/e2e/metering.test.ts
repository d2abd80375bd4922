import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { createOncekey } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import { beforeAll, describe, expect, it } from "vitest";
import { createLedger, createMeter, eventId, type Meter, type UsageEvent } from "../../examples/metering/meter.ts";
import { createDatabase, query, testPool } from "../support/postgres.ts";

const CHECKOUT = resolve(import.meta.dirname, "..", "..");

let url: string;
let meter: Meter;

beforeAll(async () => {
  ({ url } = await createDatabase());
  const pool = testPool(url);
  await createLedger((sql) => pool.query(sql));
  const once = createOncekey({ store: postgresStore(fromPg(pool)) });
  await once.start();
  meter = createMeter(once, pool);
});

function event(producer: string, sequence: bigint, more: Partial<UsageEvent> = {}): UsageEvent {
  const counted = { meter: "calls", quantity: 1n, occurredAt: new Date(0) };
  return { tenant: producer, producer, epoch: 0n, sequence, ...counted, ...more };
}

describe("the metering example", () => {
  it("runs with one command, and its ledger adds up", async () => {
    const args = ["--conditions=oncekey-source", "--import", "tsx", "examples/metering/start.ts"];
    const child = spawn(process.execPath, args, { cwd: CHECKOUT, stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    expect(await new Promise((done) => child.once("close", done))).toBe(0);
    expect(output).toMatch(/an old instance that woke up +fenced\n/);
    expect(output).toMatch(/Every event counted once\.\n$/);
  });

  it("counts an event once, however many copies race", async () => {
    const results = await Promise.all(Array.from({ length: 20 }, () => meter.record(event("racing", 0n))));
    const kinds = results.map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === "done")).toHaveLength(1);
    expect(kinds.filter((kind) => kind === "duplicate")).toHaveLength(19);
    expect(await meter.total("racing", "calls")).toBe(1n);
  });

  it("refuses a gap and says what it waits for, and fences an old instance", async () => {
    await meter.record(event("gap", 0n));
    expect(await meter.record(event("gap", 2n))).toEqual({ kind: "out_of_order", expected: 1n });
    expect(await meter.record(event("gap", 0n, { epoch: 3n }))).toMatchObject({ kind: "done" });
    expect(await meter.record(event("gap", 1n))).toEqual({ kind: "fenced", epoch: 3n });
    expect(await meter.total("gap", "calls")).toBe(2n);
  });

  it("keeps a number that the ledger refused, so that the event can come again", async () => {
    await expect(meter.record(event("refused", 0n, { quantity: 0n }))).rejects.toThrow(/quantity/);
    expect(await meter.record(event("refused", 0n, { quantity: 9_007_199_254_740_993n }))).toMatchObject({
      kind: "done",
    });
    expect(await meter.total("refused", "calls")).toBe(9_007_199_254_740_993n);
  });

  it("never changes what it has written: a correction is an event of its own", async () => {
    await meter.record(event("final", 0n, { quantity: 5n }));
    await expect(query(url, "UPDATE usage_events SET quantity = 4")).rejects.toThrow(/record a correction/);
    await expect(query(url, "DELETE FROM usage_events")).rejects.toThrow(/record a correction/);
    await meter.record(event("final", 1n, { quantity: -5n, corrects: eventId(event("final", 0n)) }));
    expect(await meter.total("final", "calls")).toBe(0n);
    const stranger = { quantity: -5n, corrects: eventId(event("final", 0n)) };
    await expect(meter.record(event("stranger", 0n, stranger))).rejects.toThrow(/foreign key/);
  });
});
