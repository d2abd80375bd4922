import type { Oncekey } from "oncekey";
import { type Field, type FixMessage, fixTime, tag, writeMessage } from "./message.ts";
import { currentState, duplicateOrder, orderFault, placeOrder, type Sql } from "./orders.ts";

// A FIX session on the acceptor's side. Its numbers are a producer's: MsgSeqNum counts from 1 without gaps, and begins anew
// with each trading day. A number, the order that came under it and the report that goes out for it are one commit.

/** Who is at the other end, as its Logon has proven. */
export interface Session {
  readonly tenant: string;
  /** Tag 49 of the other side, 56 of ours. */
  readonly sender: string;
  readonly us: string;
  /** `YYYYMMDD`: the session's numbers begin anew with it. */
  readonly day: string;
}

/** What one message comes to. */
export interface Taken {
  /** What is to be sent, in this order. */
  readonly send: readonly string[];
  /** Whether the connection ends afterwards. */
  readonly hangUp: boolean;
}

/** An instance and the database that it works on. */
export interface Venue<Tx extends Sql> {
  readonly once: Pick<Oncekey<Tx>, "consumeNumbered" | "consumeNumberedBatch">;
  readonly database: Sql;
}

const IGNORED: Taken = { send: [], hangUp: false };
const sending = (...messages: string[]): Taken => ({ send: messages, hangUp: false });

/** Takes one message of a session in, in the order of their numbers. */
export async function takeMessage<Tx extends Sql>(
  venue: Venue<Tx>,
  session: Session,
  message: FixMessage,
): Promise<Taken> {
  if (message.type === "4") return fillGap(venue, session, message);
  const number = { ...producerOf(session), sequence: BigInt(message.sequence - 1) };
  const result = await venue.once.consumeNumbered(number, ({ tx }) => answersTo(tx, session, message));
  switch (result.kind) {
    case "done":
      return { send: result.value, hangUp: message.type === "5" };
    case "duplicate":
      // What was done under a number is not done again. Without 43=Y the two sides count differently.
      return message.possDup
        ? IGNORED
        : logout(venue, session, `MsgSeqNum too low, ${message.sequence} was received before`);
    case "out_of_order":
      return askAgain(venue, session, message, Number(result.expected) + 1);
    default:
      // A newer day has begun, or nothing is known to be done. The other side connects again, and sends again with 43=Y.
      return { send: [], hangUp: true };
  }
}

function producerOf({ tenant, sender, us, day }: Session) {
  return { tenant, source: `fix:${us}`, producer: sender, epoch: BigInt(day) };
}

/** What a message is answered, written down in its own transaction. */
async function answersTo(tx: Sql, session: Session, message: FixMessage): Promise<string[]> {
  switch (message.type) {
    case "A":
      return [await say(tx, session, logon(message))];
    case "D":
      return [await say(tx, session, await orderAnswer(tx, session, message))];
    case "1":
      return [
        await say(tx, session, [
          [tag.msgType, "0"],
          [tag.testReqID, message.get(tag.testReqID) ?? ""],
        ]),
      ];
    case "2":
      return sayAgain(tx, session, message);
    case "5":
      return [await say(tx, session, [[tag.msgType, "5"]])];
    default:
      return [];
  }
}

function logon({ get }: FixMessage): readonly Field[] {
  return [
    [tag.msgType, "A"],
    [tag.encryptMethod, "0"],
    [tag.heartBtInt, get(tag.heartBtInt) ?? "30"],
  ];
}

/**
 * A new number, but perhaps an old order. With PossResend (97=Y) a known one is no mistake: how it stands is told. Without,
 * the sender means another order than the first one, which must not be taken for it.
 */
async function orderAnswer(tx: Sql, session: Session, message: FixMessage): Promise<readonly Field[]> {
  const fault = orderFault(message);
  if (fault !== null) return fault;
  const known = await currentState(tx, session, message);
  if (known === null) return placeOrder(tx, session, message);
  return message.possResend ? known : duplicateOrder(message);
}

/** Ends a session that cannot go on, and says why. */
async function logout<Tx extends Sql>({ database }: Venue<Tx>, session: Session, why: string): Promise<Taken> {
  const said = await say(database, session, [
    [tag.msgType, "5"],
    [tag.text, why],
  ]);
  return { send: [said], hangUp: true };
}

/** Something is missing. A Logon is answered all the same, or the other side would not listen. */
async function askAgain<Tx extends Sql>(
  { database }: Venue<Tx>,
  session: Session,
  message: FixMessage,
  from: number,
): Promise<Taken> {
  const answers: (readonly Field[])[] = message.type === "A" ? [logon(message)] : [];
  answers.push([
    [tag.msgType, "2"],
    [tag.beginSeqNo, String(from)],
    [tag.endSeqNo, "0"],
  ]);
  const send: string[] = [];
  for (const answer of answers) send.push(await say(database, session, answer));
  return sending(...send);
}

/** SequenceReset with GapFill: the other side skips numbers under which it has nothing to repeat. */
async function fillGap<Tx extends Sql>(venue: Venue<Tx>, session: Session, message: FixMessage): Promise<Taken> {
  const next = Number(message.get(tag.newSeqNo));
  const count = next - message.sequence;
  if (message.get(tag.gapFillFlag) !== "Y" || !(count > 0)) {
    return logout(venue, session, "Only a SequenceReset that fills a gap (123=Y) is understood");
  }
  const span = { first: BigInt(message.sequence - 1), count: BigInt(count) };
  const result = await venue.once.consumeNumberedBatch({ ...producerOf(session), ...span }, async () => null);
  if (result.kind === "done" || result.kind === "duplicate") return IGNORED;
  if (result.kind !== "out_of_order") return { send: [], hangUp: true };
  const expected = Number(result.expected) + 1;
  return expected < message.sequence ? askAgain(venue, session, message, expected) : IGNORED;
}

/** Writes a message of ours down under our next number: it can be said again, also by the next process. */
async function say(db: Sql, { sender, us, day }: Session, fields: readonly Field[]): Promise<string> {
  const { rows } = await db.query(
    `WITH moved AS (
       INSERT INTO fix_session AS known (sender, trading_day, next_out) VALUES ($1, $2, 2)
       ON CONFLICT (sender, trading_day) DO UPDATE SET next_out = known.next_out + 1
       RETURNING next_out - 1 AS sequence
     )
     INSERT INTO fix_out (sender, trading_day, sequence, sent_at, fields)
     SELECT $1, $2, sequence, clock_timestamp(), $3::jsonb FROM moved RETURNING sequence, sent_at`,
    [sender, day, JSON.stringify(fields)],
  );
  const { sequence, sent_at } = rows[0] as { readonly sequence: number; readonly sent_at: Date };
  return written({ sender, us }, { sequence, fields, times: [[tag.sendingTime, fixTime(sent_at)]] });
}

interface Said {
  readonly sequence: number;
  readonly fields: readonly Field[];
  readonly times: readonly Field[];
}

function written({ sender, us }: Pick<Session, "sender" | "us">, { sequence, fields, times }: Said): string {
  const [type = [tag.msgType, "0"] as const, ...rest] = fields;
  const head: Field[] = [type, [tag.senderCompID, us], [tag.targetCompID, sender], [tag.msgSeqNum, String(sequence)]];
  return writeMessage([...head, ...times, ...rest]);
}

/** Reports are repeated as they were, marked 43=Y; what belongs to the session itself is skipped. */
const REPEATED = new Set(["8", "3"]);

/** Answers a ResendRequest. */
async function sayAgain(tx: Sql, session: Session, { get }: FixMessage): Promise<string[]> {
  const { sender, day } = session;
  const [first, last] = [tag.beginSeqNo, tag.endSeqNo].map((name) => Number.parseInt(get(name) ?? "", 10) || 0);
  const { rows } = await tx.query(
    `SELECT sequence, sent_at, fields FROM fix_out
     WHERE sender = $1 AND trading_day = $2 AND sequence >= $3 AND ($4 = 0 OR sequence <= $4) ORDER BY sequence`,
    [sender, day, first, last],
  );
  return (rows as unknown as { sequence: number; sent_at: Date; fields: readonly Field[] }[]).map((row) => {
    const { sequence, sent_at } = row;
    const isReport = REPEATED.has(row.fields[0]?.[1] ?? "");
    const skip: readonly Field[] = [
      [tag.msgType, "4"],
      [tag.gapFillFlag, "Y"],
      [tag.newSeqNo, String(sequence + 1)],
    ];
    const times: Field[] = [
      [tag.possDupFlag, "Y"],
      [tag.sendingTime, fixTime(new Date())],
      [tag.origSendingTime, fixTime(sent_at)],
    ];
    return written(session, { sequence, fields: isReport ? row.fields : skip, times });
  });
}
