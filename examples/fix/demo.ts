import { PGlite } from "@electric-sql/pglite";
import { createOncekey } from "oncekey";
import { fromPGlite } from "oncekey/drivers/pglite";
import { migrate, postgresStore } from "oncekey/postgres";
import { startAcceptor } from "./acceptor.ts";
import { initiate, newCounting } from "./initiator.ts";
import { type Field, type FixMessage, tag } from "./message.ts";
import { TABLES } from "./orders.ts";

// One order, sent in every way in which FIX lets it be sent again; on a PostgreSQL inside this process.
//
//   node --conditions=oncekey-source --import tsx examples/fix/demo.ts

const ORDER: readonly Field[] = [
  [tag.msgType, "D"],
  [tag.clOrdID, "A-1"],
  [tag.symbol, "TEA"],
  [tag.side, "1"],
  [tag.orderQty, "100"],
];

function show(what: string, { get }: FixMessage): void {
  const [order, execType, reason] = [tag.orderID, tag.execType, tag.ordRejReason].map((name) => get(name) ?? "-");
  process.stdout.write(`${what.padEnd(44)} 37=${order} 150=${execType} 103=${reason}\n`);
}

async function main(): Promise<boolean> {
  const db = await PGlite.create();
  const driver = fromPGlite(db);
  await migrate(driver);
  await db.exec(TABLES);
  const once = createOncekey({ store: postgresStore(driver) });
  await once.start();
  const counterparties = new Map([["ACME", { tenant: "acme", password: "fix_test_acme" }]]);
  const acceptor = await startAcceptor({
    ...{ once, database: db, us: "EXCHANGE", counterparties },
    report: (error) => console.error(error),
  });
  const acme = await initiate(acceptor.port, "ACME", "EXCHANGE", newCounting());
  acme.send([tag.msgType, "A"], [tag.password, "fix_test_acme"]);
  await acme.next();

  const first = acme.send(...ORDER);
  show("new", await acme.next());
  acme.sendAgain(first);
  acme.send(...ORDER, [tag.possResend, "Y"]);
  show("the same number with 43=Y: ignored; 97=Y", await acme.next());
  acme.send(...ORDER);
  show("neither: another order of a used id", await acme.next());

  acme.hangUp();
  await acceptor.close();
  await once.close();
  const { rows } = await db.query<{ orders: number }>("SELECT count(*)::int AS orders FROM fix_order");
  await db.close();
  process.stdout.write(`${rows[0]?.orders} order\n`);
  return rows[0]?.orders === 1;
}

process.exitCode = (await main()) ? 0 : 1;
