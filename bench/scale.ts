/**
 * Whether what is stored slows down what is asked: claim, replay, sweep and purge among few and among many entries.
 *
 *   npm run bench:scale -- [--entries 10000,1000000,20000000] [--rounds 7] [--callers 8] [--json FILE] [--write]
 *
 * One PostgreSQL of its own on the loopback, a database for each number of entries; they work in turn, in short slices, in
 * every round, and only ratios count. 20 million entries take 20 GB of disk and some minutes to fill. Nothing here passes or fails.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fromPg } from "oncekey/drivers/pg";
import { migrate } from "oncekey/postgres";
import pg from "pg";
import { runCommand, UsageError, wholeNumber } from "../lab/support/command.ts";
import { say } from "../lab/support/report.ts";
import { repositoryRoot } from "../scripts/check.ts";
import { startTestServer, type TestServer } from "../test/support/postgres-server.ts";
import { machineClass } from "./figures.ts";
import { INVOICE_TABLE } from "./invoice.ts";
import { interleave, type Pace, rateOf, ratioOf, spreadOf } from "./measure.ts";
import { spreadText } from "./print.ts";
import { openScaled, type Scaled, WORKS, type Work } from "./scale/contenders.ts";
import { SCALE_FIGURES, type ScaleFigures, type ScalePoint } from "./scale/figures.ts";
import { query } from "./world.ts";

interface Options {
  readonly sizes: readonly number[];
  readonly rounds: number;
  readonly sliceMs: number;
  readonly callers: number;
  readonly json: string | null;
  readonly write: boolean;
}

const USAGE =
  "npm run bench:scale -- [--entries 10000,1000000,20000000] [--rounds 7] [--slice-ms 1500] [--callers 8] [--json FILE] [--write]";

/** Room for the indexes of the larger tables; the disk counts, and no checkpoint or vacuum falls into one slice alone. */
const SETTINGS = {
  autovacuum: "off",
  checkpoint_timeout: "1h",
  maintenance_work_mem: "1GB",
  max_wal_size: "16GB",
  // Filling a table then writes no log; what requests write is the same.
  wal_level: "minimal",
  max_wal_senders: "0",
  shared_buffers: "2GB",
};

/** The server does most of it: one slice of the others is not yet compiled as it will be. */
const WARM_UP_REQUESTS = 2_000;

function readOptions(): Options {
  const text = (value: string) => ({ type: "string", default: value }) as const;
  const { values } = parseArgs({
    options: {
      entries: text("10000,1000000,20000000"),
      rounds: text("7"),
      "slice-ms": text("1500"),
      callers: text("8"),
      json: { type: "string" },
      write: { type: "boolean", default: false },
    },
  });
  const sizes = values.entries.split(",").map((size) => wholeNumber("--entries", size, 10));
  if (sizes.some((size, at) => size <= (sizes[at - 1] ?? 0))) throw new UsageError("--entries are numbers that rise.");
  return {
    sizes,
    rounds: wholeNumber("--rounds", values.rounds),
    sliceMs: wholeNumber("--slice-ms", values["slice-ms"], 10),
    callers: wholeNumber("--callers", values.callers),
    json: values.json ?? null,
    write: values.write,
  };
}

async function makeDatabase(server: TestServer, entries: number): Promise<string> {
  await query(server.url, `CREATE DATABASE scale_${entries}`);
  const url = server.urlOf(`scale_${entries}`);
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  await migrate(fromPg(pool));
  await pool.query(INVOICE_TABLE);
  await pool.end();
  return url;
}

async function measureWork(work: Work, scaled: readonly Scaled[], pace: Pace): Promise<ScalePoint[]> {
  const bySize = await interleave(
    scaled.map(({ contenders }) => contenders[work]),
    pace,
  );
  const of = (entries: number) => bySize.get(String(entries)) ?? [];
  const fewest = of(scaled[0]?.entries ?? 0);
  return scaled.map(({ entries }) => ({
    ...{ work, entries, perSecond: spreadOf(of(entries).map(rateOf)) },
    overFewest: ratioOf(of(entries), fewest),
  }));
}

const pointLine = ({ work, entries, perSecond, overFewest }: ScalePoint): string =>
  `${work}, ${entries} entries: ${Math.round(perSecond.median)} a second, ${spreadText(overFewest)} of the rate with the fewest`;

async function measureAll(
  server: TestServer,
  options: Options,
): Promise<Pick<ScaleFigures, "points" | "bytesPerEntry">> {
  const { sizes, rounds, sliceMs, callers } = options;
  const scaled: Scaled[] = [];
  try {
    for (const entries of sizes) {
      const url = await makeDatabase(server, entries);
      scaled.push(await openScaled(url, { entries, callers, slices: rounds, say }));
    }
    const bytesPerEntry: { entries: number; bytes: number }[] = [];
    for (const one of scaled) bytesPerEntry.push({ entries: one.entries, bytes: await one.bytesPerEntry() });
    const points: ScalePoint[] = [];
    for (const work of WORKS) {
      // Sweep and purge work through a fixed number of entries, once for the warm-up.
      const warmUpRequests = work === "sweep" || work === "purge" ? 1 : WARM_UP_REQUESTS;
      const found = await measureWork(work, scaled, { rounds, sliceMs, warmUpRequests, warmUpMs: 15_000 });
      for (const point of found) say(pointLine(point));
      points.push(...found);
    }
    return { points, bytesPerEntry };
  } finally {
    for (const one of scaled) await one.close();
  }
}

async function main(): Promise<number> {
  const options = readOptions();
  const server = await startTestServer({ fsync: true, settings: SETTINGS });
  try {
    const [row] = await query(server.url, "SHOW server_version");
    const machine = machineClass(String(row?.server_version).split(" ", 1)[0] ?? "");
    say(machine);
    const command = `npm run bench:scale -- --entries ${options.sizes.join(",")} --rounds ${options.rounds}`;
    const figures: ScaleFigures = {
      ...{ ranOn: new Date().toISOString().slice(0, 10), command, machine },
      ...(await measureAll(server, options)),
    };
    const text = `${JSON.stringify(figures, null, 2)}\n`;
    if (options.json !== null) await writeFile(options.json, text);
    if (options.write) await writeFile(join(repositoryRoot, SCALE_FIGURES), text);
    return 0;
  } finally {
    await server.close();
  }
}

await runCommand(USAGE, main);
