import { type Cipher, openPayload, ownerOf, type SealedPart, sealPayload } from "../../core/cipher.ts";
import type { SqlParameter, SqlRow } from "./driver-port.ts";
import { bytes, number, text } from "./rows.ts";
import type { StatementName } from "./statements.ts";
import { NO_BYTES } from "./windows.ts";

/** A column that may be sealed. */
export interface RotatedValue {
  readonly column: string;
  readonly part: SealedPart;
  /** The row's value under the newest key, as `put` takes it. Raises as `Cipher.open`. */
  reseal(cipher: Cipher, row: SqlRow): string;
}

/** A table with columns that may be sealed. */
export interface RotatedTable {
  /** Gives a window of rows, with what of them is due: primary key, batch, head, plain ones too, most bytes. */
  readonly due: StatementName;
  /** Puts new values into rows: of each its name, and by columns the digest of the old value and the new one. */
  readonly put: StatementName;
  /** Stands before every primary key. */
  readonly first: readonly SqlParameter[];
  keyOf(row: SqlRow): readonly SqlParameter[];
  /** The primary key as `put` takes it. */
  nameOf(row: SqlRow): Readonly<Record<string, string | number>>;
  /** How operators are told of a row. */
  shownId(row: SqlRow): string;
  readonly values: readonly RotatedValue[];
}

/** How everything that a key has sealed begins: the version byte of core/cipher.ts and the key's id. */
export function sealedHead(keyId: number): Uint8Array {
  return Uint8Array.of(0x81, keyId);
}

type Owner = (row: SqlRow) => Uint8Array;

function value(column: string, part: SealedPart, owner: Owner): RotatedValue {
  return {
    column,
    part,
    reseal(cipher, row) {
      const plain = cipher.open(owner(row), part, bytes(row, column));
      return Buffer.from(cipher.seal(owner(row), part, plain)).toString("base64");
    },
  };
}

const payload: RotatedValue = {
  column: "payload",
  part: "payload",
  reseal(cipher, row) {
    const owner = { id: text(row, "id"), tenant: text(row, "tenant") };
    return sealPayload(cipher, owner, openPayload(cipher, owner, text(row, "payload")));
  },
};

const idOf: Owner = (row) => bytes(row, "id");
const entryIdOf: Owner = (row) => bytes(row, "entry_id");
const ofTenant: Owner = (row) => ownerOf(bytes(row, "id"), text(row, "tenant"));
const messageOf: Owner = (row) => ownerOf(text(row, "id"), text(row, "tenant"));
const hexOf = (keyOf: Owner) => (row: SqlRow) => Buffer.from(keyOf(row)).toString("hex");

const entries: RotatedTable = {
  due: "rotate_entries",
  put: "reseal_entries",
  first: [NO_BYTES],
  keyOf: (row) => [idOf(row)],
  nameOf: (row) => ({ id: hexOf(idOf)(row) }),
  shownId: hexOf(idOf),
  values: [value("input", "input", ofTenant), value("context", "context", ofTenant), value("outcome", "outcome", idOf)],
};

/** Every table with sealed values, and what binds each of them to its place. */
export const rotatedTables: readonly RotatedTable[] = [
  entries,
  // Behind the entries: a completion on the way moves what it holds in this direction.
  { ...entries, due: "rotate_outcomes", put: "reseal_outcomes" },
  {
    due: "rotate_records",
    put: "reseal_records",
    first: [NO_BYTES, -1],
    keyOf: (row) => [entryIdOf(row), number(row, "position")],
    nameOf: (row) => ({ entry_id: hexOf(entryIdOf)(row), position: number(row, "position") }),
    shownId: hexOf(entryIdOf),
    values: [value("value", "record", entryIdOf)],
  },
  {
    due: "rotate_messages",
    put: "reseal_messages",
    first: [""],
    keyOf: (row) => [text(row, "id")],
    nameOf: (row) => ({ id: text(row, "id") }),
    shownId: (row) => text(row, "id"),
    values: [value("context", "message", messageOf), payload],
  },
  {
    due: "rotate_deliveries",
    put: "reseal_deliveries",
    first: [NO_BYTES],
    keyOf: (row) => [idOf(row)],
    nameOf: (row) => ({ id: hexOf(idOf)(row) }),
    shownId: hexOf(idOf),
    values: [value("value", "delivery", idOf)],
  },
];
