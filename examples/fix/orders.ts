import { type Field, type FixMessage, tag } from "./message.ts";

/** What is used of a driver's transaction: pg's and PGlite's have it. */
export interface Sql {
  query(sql: string, parameters?: unknown[]): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
}

/** Orders, by the client's own id of them; and what a session has said, to be said again where it was not heard. */
export const TABLES = `
  CREATE TABLE IF NOT EXISTS fix_order (
    sender text NOT NULL,
    trading_day text NOT NULL,
    cl_ord_id text NOT NULL,
    order_id bigint GENERATED ALWAYS AS IDENTITY,
    symbol text NOT NULL,
    side text NOT NULL,
    quantity numeric NOT NULL,
    status text NOT NULL DEFAULT '0',
    PRIMARY KEY (sender, trading_day, cl_ord_id)
  );
  CREATE TABLE IF NOT EXISTS fix_session (
    sender text, trading_day text, next_out int NOT NULL, PRIMARY KEY (sender, trading_day)
  );
  CREATE TABLE IF NOT EXISTS fix_out (
    sender text, trading_day text, sequence int, sent_at timestamptz NOT NULL, fields jsonb NOT NULL,
    PRIMARY KEY (sender, trading_day, sequence)
  );`;

/** Whose order, and on which day: a ClOrdID is unique for a sender and a trading day (tag 11, FIX 4.4). */
export interface OrderPlace {
  readonly sender: string;
  /** `YYYYMMDD`. */
  readonly day: string;
}

const REQUIRED_TAG_MISSING = "1";
const VALUE_IS_INCORRECT = "5";
const DUPLICATE_ORDER = "6";

/** What the fields of an order may hold. */
const RULES: readonly (readonly [tag: number, rule: RegExp])[] = [
  [tag.clOrdID, /^[\x21-\x7e]{1,64}$/],
  [tag.symbol, /^[\x21-\x7e]{1,32}$/],
  [tag.side, /^[12]$/],
  [tag.orderQty, /^(?!0+(\.0+)?$)\d{1,15}(\.\d{1,9})?$/],
];

/** A NewOrderSingle that nobody could place, as the session rejects it; `null`: it has all that it needs. */
export function orderFault({ sequence, get }: FixMessage): readonly Field[] | null {
  const wrong = RULES.find(([name, rule]) => !rule.test(get(name) ?? ""));
  if (wrong === undefined) return null;
  const [name] = wrong;
  return [
    [tag.msgType, "3"],
    [tag.refSeqNum, String(sequence)],
    [tag.refTagID, String(name)],
    [tag.sessionRejectReason, get(name) ? VALUE_IS_INCORRECT : REQUIRED_TAG_MISSING],
  ];
}

/** Places a new order: its row, and the report that it is accepted. To be run once. */
export async function placeOrder(tx: Sql, { sender, day }: OrderPlace, { get }: FixMessage): Promise<readonly Field[]> {
  const { rows } = await tx.query(
    `INSERT INTO fix_order (sender, trading_day, cl_ord_id, symbol, side, quantity)
     VALUES ($1, $2, $3, $4, $5, $6) RETURNING *`,
    [sender, day, get(tag.clOrdID), get(tag.symbol), get(tag.side), get(tag.orderQty)],
  );
  return report(rows[0] ?? {}, "0");
}

/** The report of what became of an order that is known; `null`: it is not. */
export async function currentState(
  tx: Sql,
  { sender, day }: OrderPlace,
  { get }: FixMessage,
): Promise<readonly Field[] | null> {
  const { rows } = await tx.query("SELECT * FROM fix_order WHERE sender = $1 AND trading_day = $2 AND cl_ord_id = $3", [
    sender,
    day,
    get(tag.clOrdID),
  ]);
  // ExecType I: nothing happened, this is how it stands.
  return rows[0] === undefined ? null : report(rows[0], "I");
}

/** The report that an order was refused because its ClOrdID was used: whoever sent it did not mean the first one. */
export function duplicateOrder({ get }: FixMessage): readonly Field[] {
  const quantities: Field[] = [
    [tag.leavesQty, "0"],
    [tag.cumQty, "0"],
    [tag.avgPx, "0"],
  ];
  const names = [tag.clOrdID, tag.symbol, tag.side];
  return [
    [tag.msgType, "8"],
    [tag.orderID, "NONE"],
    [tag.execID, `R-${get(tag.clOrdID)}`],
    [tag.execType, "8"],
    [tag.ordStatus, "8"],
    [tag.ordRejReason, DUPLICATE_ORDER],
    ...names.map((name): Field => [name, get(name) ?? ""]),
    ...quantities,
    [tag.text, "The ClOrdID was used today; the first order is untouched"],
  ];
}

function report(row: Record<string, unknown>, execType: string): readonly Field[] {
  const { order_id, cl_ord_id, symbol, side, quantity, status } = row;
  return [
    [tag.msgType, "8"],
    [tag.orderID, String(order_id)],
    [tag.execID, execType === "I" ? "0" : String(order_id)],
    [tag.clOrdID, String(cl_ord_id)],
    [tag.execType, execType],
    [tag.ordStatus, String(status)],
    [tag.symbol, String(symbol)],
    [tag.side, String(side)],
    [tag.leavesQty, String(quantity)],
    [tag.cumQty, "0"],
    [tag.avgPx, "0"],
  ];
}
