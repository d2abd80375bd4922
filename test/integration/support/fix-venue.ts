import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { createOncekey, type Oncekey } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import type pg from "pg";
import { type AcceptorOptions, startAcceptor } from "../../../examples/fix/acceptor.ts";
import { type Counting, type Initiator, initiate, newCounting } from "../../../examples/fix/initiator.ts";
import { type Field, type FixMessage, tag } from "../../../examples/fix/message.ts";
import { bundle } from "../../support/bundle.ts";
import { atEnd } from "../../support/postgres.ts";
import { ended } from "./workers.ts";

const EXAMPLE = resolve(import.meta.dirname, "..", "..", "..", "examples", "fix", "start.ts");

/** Both sides' secret: it opens nothing but these tests. */
const PASSWORD = "fix_test";

/** An instance on the database; started. */
export async function fixOnce(pool: pg.Pool): Promise<Oncekey<pg.PoolClient>> {
  const once = createOncekey({ store: postgresStore(fromPg(pool)), onError: () => {} });
  await once.start();
  return once;
}

/** An acceptor in this process, for one counterparty. */
export async function fixAcceptor(
  pool: pg.Pool,
  sender: string,
  options: Partial<AcceptorOptions<pg.PoolClient>> = {},
): Promise<{ readonly port: number }> {
  const counterparties = new Map([[sender, { tenant: "acme", password: PASSWORD }]]);
  const once = await fixOnce(pool);
  const report = () => {};
  const acceptor = await startAcceptor({
    ...{ once, database: pool, us: "EXCHANGE", counterparties, report },
    ...options,
  });
  atEnd(() => acceptor.close());
  return acceptor;
}

/** The example as a process of its own. `crashAt`: the type of message after whose commit it kills itself. */
export async function fixProcess(url: string, sender: string, crashAt?: string) {
  const outDir = await mkdtemp(join(tmpdir(), "oncekey-fix-"));
  atEnd(() => rm(outDir, { recursive: true, force: true }));
  await bundle({ programs: { fix: EXAMPLE }, outDir });
  const env = {
    ...process.env,
    NODE_NO_WARNINGS: "1",
    DATABASE_URL: url,
    FIX_PASSWORD: PASSWORD,
    FIX_COUNTERPARTY: sender,
    ...(crashAt !== undefined && { FIX_LAB_CRASH: crashAt }),
  };
  const child = spawn(process.execPath, [join(outDir, "fix.mjs")], { env, stdio: ["ignore", "pipe", "inherit"] });
  atEnd(() => ended(child));
  const died = new Promise<NodeJS.Signals | number | null>((done) =>
    child.once("exit", (code, signal) => done(signal ?? code)),
  );
  const early = died.then((how) => Promise.reject(new Error(`The acceptor ended: ${how}`)));
  early.catch(() => {});
  const ready = new Promise<number>((done) =>
    createInterface({ input: child.stdout }).on("line", (line) => done(JSON.parse(line).ready)),
  );
  return { port: await Promise.race([ready, early]), died, stop: () => void child.kill("SIGTERM") };
}

/** Connects, and sends the Logon; its answer is still to be looked at. */
export async function logOn(
  port: number,
  sender: string,
  counting: Counting = newCounting(),
  password: string = PASSWORD,
): Promise<Initiator> {
  const initiator = await initiate(port, sender, "EXCHANGE", counting);
  atEnd(async () => initiator.hangUp());
  initiator.send([tag.msgType, "A"], [tag.password, password]);
  return initiator;
}

/** A NewOrderSingle. */
export function order(clOrdID: string, ...more: Field[]): Field[] {
  const named: Field[] = [
    [tag.msgType, "D"],
    [tag.clOrdID, clOrdID],
  ];
  return [...named, [tag.symbol, "TEA"], [tag.side, "1"], [tag.orderQty, "100"], ...more];
}

/** What a report says: ExecType, OrdStatus, OrdRejReason, and whether it is marked as said before. */
export function said({ type, possDup, get }: FixMessage): string {
  const [execType, status, reason] = [tag.execType, tag.ordStatus, tag.ordRejReason].map((name) => get(name) ?? "-");
  return [`35=${type}`, `150=${execType}`, `39=${status}`, `103=${reason}`, ...(possDup ? ["43=Y"] : [])].join(" ");
}
