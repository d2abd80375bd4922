// FIX messages as they travel: `tag=value` fields, each ended by SOH. Only what an order entry session needs; repeating
// groups and data fields (whose values may hold SOH) are not understood.

const SOH = "\x01";

/** Tags by their names in the standard. */
export const tag = {
  avgPx: 6,
  beginSeqNo: 7,
  clOrdID: 11,
  cumQty: 14,
  endSeqNo: 16,
  execID: 17,
  msgSeqNum: 34,
  msgType: 35,
  newSeqNo: 36,
  orderID: 37,
  orderQty: 38,
  ordStatus: 39,
  possDupFlag: 43,
  refSeqNum: 45,
  senderCompID: 49,
  sendingTime: 52,
  side: 54,
  symbol: 55,
  targetCompID: 56,
  text: 58,
  possResend: 97,
  encryptMethod: 98,
  ordRejReason: 103,
  heartBtInt: 108,
  testReqID: 112,
  origSendingTime: 122,
  gapFillFlag: 123,
  execType: 150,
  leavesQty: 151,
  refTagID: 371,
  sessionRejectReason: 373,
  password: 554,
} as const;

/** A field: its tag and its value, in their order in the message. */
export type Field = readonly [tag: number, value: string];

/** A message that was read, without the fields that frame it (8, 9, 10). */
export interface FixMessage {
  /** Tag 35. */
  readonly type: string;
  /** Tag 34. */
  readonly sequence: number;
  readonly sender: string;
  readonly target: string;
  /** Tag 43: sent before under this very number. */
  readonly possDup: boolean;
  /** Tag 97: perhaps sent before, under another number. */
  readonly possResend: boolean;
  /** The first value of a field; absent ones are `undefined`. */
  get(tag: number): string | undefined;
}

/** The text of a message, with length and checksum. */
export function writeMessage(fields: readonly Field[]): string {
  const body = fields.map(([name, value]) => `${name}=${value}${SOH}`).join("");
  const framed = `8=FIX.4.4${SOH}9=${body.length}${SOH}${body}`;
  return `${framed}10=${checksum(framed)}${SOH}`;
}

const FRAME = new RegExp(`^8=FIX\\.4\\.4${SOH}9=(\\d+)${SOH}(.*)10=(\\d{3})${SOH}$`, "s");
const WHOLE = new RegExp(`8=FIX.*?${SOH}10=\\d{3}${SOH}`, "gs");

/**
 * The message that a text holds; `null` where it is garbled. Such a one is ignored, as the standard has it: the gap that it
 * leaves in the numbers shows with the next one.
 */
export function readMessage(text: string): FixMessage | null {
  const frame = FRAME.exec(text);
  if (frame === null) return null;
  const [, length = "", body = "", sum] = frame;
  if (Number(length) !== body.length || checksum(text.slice(0, -7)) !== sum) return null;
  const values = new Map<number, string>();
  for (const field of body.slice(0, -1).split(SOH)) {
    const at = field.indexOf("=");
    const name = Number(field.slice(0, at));
    if (at < 1 || !Number.isInteger(name)) return null;
    if (!values.has(name)) values.set(name, field.slice(at + 1));
  }
  return messageOf(values);
}

function messageOf(values: ReadonlyMap<number, string>): FixMessage | null {
  const get = (name: number) => values.get(name);
  const [type, number, sender, target] = [tag.msgType, tag.msgSeqNum, tag.senderCompID, tag.targetCompID].map(get);
  if (!type || !number || !sender || !target || !/^[1-9]\d{0,8}$/.test(number)) return null;
  const flags = { possDup: get(tag.possDupFlag) === "Y", possResend: get(tag.possResend) === "Y" };
  return { type, sequence: Number(number), sender, target, ...flags, get };
}

/** Takes the whole messages off the front of what has arrived. */
export function splitMessages(arrived: string): { readonly whole: readonly string[]; readonly rest: string } {
  const whole = arrived.match(WHOLE) ?? [];
  const last = whole.at(-1);
  return { whole, rest: last === undefined ? arrived : arrived.slice(arrived.lastIndexOf(last) + last.length) };
}

function checksum(text: string): string {
  let sum = 0;
  for (const byte of Buffer.from(text, "latin1")) sum = (sum + byte) % 256;
  return String(sum).padStart(3, "0");
}

/** A time as FIX writes it. */
export function fixTime(at: Date): string {
  return at.toISOString().replaceAll("-", "").replace("T", "-").slice(0, -1);
}
