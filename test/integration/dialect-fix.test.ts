import type pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { newCounting } from "../../examples/fix/initiator.ts";
import { type Field, readMessage, tag, writeMessage } from "../../examples/fix/message.ts";
import { TABLES } from "../../examples/fix/orders.ts";
import { takeQueuedOrder } from "../../examples/fix/queue.ts";
import { createDatabase, testPool } from "../support/postgres.ts";
import { fixAcceptor, fixOnce, fixProcess, logOn, order, said } from "./support/fix-venue.ts";

const NEW = "35=8 150=0 39=0 103=-";
const STATE = "35=8 150=I 39=0 103=-";
const DUPLICATE = "35=8 150=8 39=8 103=6";
const RESEND: Field = [tag.possResend, "Y"];

let url: string;
let pool: pg.Pool;

beforeAll(async () => {
  url = (await createDatabase()).url;
  pool = testPool(url);
  await pool.query(TABLES);
});

let counterparties = 0;

/** A counterparty that no other test has. */
function newSender(): string {
  counterparties += 1;
  return `ACME${counterparties}`;
}

async function orders(sender: string): Promise<string[]> {
  const found = await pool.query("SELECT cl_ord_id FROM fix_order WHERE sender = $1 ORDER BY order_id", [sender]);
  return found.rows.map(({ cl_ord_id }) => cl_ord_id);
}

/** A session that is logged on to an acceptor of this process. */
async function session(options: { readonly day?: () => string } = {}) {
  const sender = newSender();
  const counting = newCounting();
  const acceptor = await fixAcceptor(pool, sender, options);
  const peer = await logOn(acceptor.port, sender, counting);
  expect((await peer.next()).type).toBe("A");
  return { sender, counting, acceptor, peer };
}

describe("a number of a session", () => {
  it("that comes again with 43=Y is ignored", async () => {
    const { sender, peer } = await session();
    const sequence = peer.send(...order("A-1"));
    expect(said(await peer.next())).toBe(NEW);
    peer.sendAgain(sequence);
    peer.sendAgain(sequence);
    peer.send(...order("A-2"));
    expect((await peer.next()).get(tag.clOrdID)).toBe("A-2");
    expect(await orders(sender)).toEqual(["A-1", "A-2"]);
  });

  it("that comes again without 43=Y ends the session: the two sides count differently", async () => {
    const { sender, peer } = await session();
    const sequence = peer.send(...order("A-1"));
    await peer.next();
    peer.sendAgain(sequence, false);
    const last = await peer.next();
    expect([last.type, last.get(tag.text)]).toEqual(["5", "MsgSeqNum too low, 2 was received before"]);
    await peer.ended;
    expect(await orders(sender)).toEqual(["A-1"]);
  });

  it("that is missing is asked for, and what came after it waits for its turn", async () => {
    const { sender, peer } = await session();
    const lost = peer.lose(...order("A-1"));
    const early = peer.send(...order("A-2"));
    const asked = await peer.next();
    expect([asked.type, asked.get(tag.beginSeqNo), asked.get(tag.endSeqNo)]).toEqual(["2", String(lost), "0"]);
    expect(await orders(sender)).toEqual([]);
    peer.sendAgain(lost);
    peer.sendAgain(early);
    expect([said(await peer.next()), said(await peer.next())]).toEqual([NEW, NEW]);
    expect(await orders(sender)).toEqual(["A-1", "A-2"]);
  });

  it("may be skipped by the other side, once", async () => {
    const { peer, sender, counting } = await session();
    for (const _ of [1, 2]) peer.lose([tag.msgType, "0"]);
    const [first] = [counting.next - 2];
    counting.sent.set(first, [
      [tag.msgType, "4"],
      [tag.gapFillFlag, "Y"],
      [tag.newSeqNo, String(counting.next)],
    ]);
    peer.sendAgain(first);
    peer.sendAgain(first);
    peer.send(...order("A-1"));
    expect(said(await peer.next())).toBe(NEW);
    expect(await orders(sender)).toEqual(["A-1"]);
  });

  it("begins anew with the trading day, and one of the day before ends its connection", async () => {
    let day = "20260105";
    const { sender, peer, acceptor } = await session({ day: () => day });
    peer.send(...order("A-1"));
    expect(said(await peer.next())).toBe(NEW);
    day = "20260106";
    const next = await logOn(acceptor.port, sender);
    expect((await next.next()).type).toBe("A");
    next.send(...order("A-1"));
    expect(said(await next.next())).toBe(NEW);
    peer.send(...order("A-2"));
    await peer.ended;
    expect(await orders(sender)).toEqual(["A-1", "A-1"]);
  });
});

describe("a ClOrdID", () => {
  it("that was used is refused, whatever the order says now", async () => {
    const { sender, peer } = await session();
    peer.send(...order("A-1"));
    const first = await peer.next();
    for (const quantity of ["100", "7"]) {
      peer.send(...order("A-1").slice(0, -1), [tag.orderQty, quantity]);
      const refused = await peer.next();
      expect(said(refused)).toBe(DUPLICATE);
      expect(refused.get(tag.orderID)).toBe("NONE");
    }
    peer.send(...order("A-1", RESEND));
    expect((await peer.next()).get(tag.orderID)).toBe(first.get(tag.orderID));
    expect(await orders(sender)).toEqual(["A-1"]);
  });

  it("with 97=Y is reported as it stands where it is known, and new where it is not", async () => {
    const { sender, peer } = await session();
    peer.send(...order("A-1", RESEND));
    expect(said(await peer.next())).toBe(NEW);
    peer.send(...order("A-1", RESEND));
    expect(said(await peer.next())).toBe(STATE);
    expect(await orders(sender)).toEqual(["A-1"]);
  });

  it.each([
    ["lacks its symbol", order("A-1").filter(([name]) => name !== tag.symbol), "55", "1"],
    ["asks for nothing", [...order("A-1").slice(0, -1), [tag.orderQty, "0"]] as Field[], "38", "5"],
    ["asks for what is no number", [...order("A-1").slice(0, -1), [tag.orderQty, "many"]] as Field[], "38", "5"],
  ])("of an order that %s is not used up", async (_, fields, name, reason) => {
    const { sender, peer } = await session();
    peer.send(...fields);
    const rejected = await peer.next();
    const told = [rejected.type, rejected.get(tag.refTagID), rejected.get(tag.sessionRejectReason)];
    expect(told).toEqual(["3", name, reason]);
    peer.send(...order("A-1"));
    expect(said(await peer.next())).toBe(NEW);
    expect(await orders(sender)).toEqual(["A-1"]);
  });
});

describe("a process that is killed between the commit of an order and its report", () => {
  it("has placed it once: 43=Y is ignored by the next one, which says the report again when it is asked", async () => {
    const sender = newSender();
    const counting = newCounting();
    const first = await fixProcess(url, sender, "D");
    const peer = await logOn(first.port, sender, counting);
    expect((await peer.next()).sequence).toBe(1);
    const sequence = peer.send(...order("A-1"));
    expect(await first.died).toBe("SIGKILL");
    await peer.ended;
    expect(await orders(sender)).toEqual(["A-1"]);

    const next = await fixProcess(url, sender);
    const again = await logOn(next.port, sender, counting);
    const answered = await again.next();
    expect([answered.type, answered.sequence]).toEqual(["A", 3]);
    again.sendAgain(sequence);
    again.send([tag.msgType, "2"], [tag.beginSeqNo, "2"], [tag.endSeqNo, "0"]);
    const report = await again.next();
    expect([said(report), report.sequence, report.get(tag.clOrdID)]).toEqual([`${NEW} 43=Y`, 2, "A-1"]);
    const skipped = await again.next();
    expect([skipped.type, skipped.sequence, skipped.get(tag.newSeqNo)]).toEqual(["4", 3, "4"]);
    again.send(...order("A-1", RESEND));
    expect(said(await again.next())).toBe(STATE);
    expect(await orders(sender)).toEqual(["A-1"]);
    next.stop();
    expect(await next.died).toBe(0);
  });
});

describe("an acceptor", () => {
  it.each([
    ["a wrong password", "wrong"],
    ["none", ""],
  ])("hangs up on a Logon with %s, and counts nothing of it", async (_, password) => {
    const sender = newSender();
    const { port } = await fixAcceptor(pool, sender);
    const stranger = await logOn(port, sender, newCounting(), password);
    await stranger.ended;
    const peer = await logOn(port, sender);
    expect((await peer.next()).type).toBe("A");
  });

  it("hangs up on who sends in another one's name", async () => {
    const { sender, acceptor } = await session();
    const other = await logOn(acceptor.port, newSender());
    await other.ended;
    expect(await orders(sender)).toEqual([]);
  });
});

it("a message is read as it was written, and a garbled one not at all", () => {
  const fields: Field[] = [...order("A-1"), [49, "ACME"], [56, "EXCHANGE"], [34, "7"]];
  const text = writeMessage(fields);
  expect(readMessage(text)).toMatchObject({ type: "D", sequence: 7, sender: "ACME", possDup: false });
  const garbled = [text.replace("TEA", "TEE"), text.slice(0, -1), text.replace("9=", "9=1"), `${text}x`, ""];
  expect(garbled.map(readMessage)).toEqual(garbled.map(() => null));
});

describe("an order from a queue", () => {
  const DAY = "20260105";
  const read = (...fields: Field[]) => {
    const message = readMessage(writeMessage([...fields, [49, "GATE"], [56, "EXCHANGE"], [34, "1"]]));
    if (message === null) throw new Error("The test wrote a garbled message.");
    return message;
  };

  async function taker(sender = newSender()) {
    const once = await fixOnce(pool);
    const take = async (fields: Field[], from: { readonly day?: string; readonly redelivered?: boolean } = {}) => {
      const { day = DAY, redelivered = false } = from;
      const answer = await takeQueuedOrder(once, pool, { tenant: "acme", sender, day, redelivered }, read(...fields));
      const get = new Map(answer ?? []);
      return `150=${get.get(tag.execType)} 103=${get.get(tag.ordRejReason) ?? "-"}`;
    };
    return { sender, take };
  }

  it("is placed once; a second one is refused, one with 97=Y or that the queue repeats is reported", async () => {
    const { sender, take } = await taker();
    expect(await take(order("A-1", RESEND))).toBe("150=0 103=-");
    expect(await take(order("A-1"))).toBe("150=8 103=6");
    expect(await take(order("A-1", RESEND))).toBe("150=I 103=-");
    expect(await take(order("A-1"), { redelivered: true })).toBe("150=I 103=-");
    expect(await take(order("A-1"), { day: "20260106" })).toBe("150=0 103=-");
    expect(await orders(sender)).toEqual(["A-1", "A-1"]);
  });

  it("is placed once where two consumers get copies of it at the same moment", async () => {
    const sender = newSender();
    const takers = [await taker(sender), await taker(sender)];
    const copies = takers.flatMap(({ take }) => Array.from({ length: 5 }, () => take(order("A-1"))));
    const answers = await Promise.all(copies);
    expect(answers.filter((answer) => answer === "150=0 103=-")).toHaveLength(1);
    expect(answers.filter((answer) => answer === "150=8 103=6")).toHaveLength(9);
    expect(await orders(sender)).toEqual(["A-1"]);
  });
});
