import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { DriverCase } from "./driver-harness.ts";

/** Parameters and columns. */
export const values: readonly DriverCase[] = [
  {
    name: "carries bytes, text, numbers, booleans and null to the server and back",
    async run({ driver }) {
      const bytes = new Uint8Array([0, 1, 127, 128, 255, 92, 39]);
      const text = 'quote \' backslash \\ emoji 🧾 "double"';
      const [row] = await driver.run(
        "SELECT $1::bytea AS bytes, $2::text AS text, $3::int AS int, $4::float8 AS float, $5::boolean AS yes, $6::text AS none",
        [bytes, text, 42, 1.5, true, null],
      );
      assert.ok(row?.bytes instanceof Uint8Array);
      assert.deepEqual([...row.bytes], [...bytes]);
      assert.deepEqual([row.text, row.int, row.float, row.yes, row.none], [text, 42, 1.5, true, null]);
    },
  },
  {
    name: "keeps empty bytes, empty text and null apart",
    async run({ driver }) {
      const sql = "SELECT $1::bytea AS bytes, $2::text AS text, $3::bytea AS none, $4::boolean AS no";
      const [row] = await driver.run(sql, [new Uint8Array(), "", null, false]);
      assert.ok(row?.bytes instanceof Uint8Array);
      assert.deepEqual([row.bytes.length, row.text, row.none, row.no], [0, "", null, false]);
    },
  },
  {
    name: "carries bigint as text, without losing a digit",
    async run({ driver }) {
      const sql = "SELECT ($1::bigint + 0)::text AS big, (-9223372036854775808)::text AS least";
      const [row] = await driver.run(sql, ["9007199254740993"]);
      assert.deepEqual([row?.big, row?.least], ["9007199254740993", "-9223372036854775808"]);
    },
  },
  {
    name: "returns column names as the statement spells them, rows in their order, and no rows as none",
    async run({ driver }) {
      const rows = await driver.run("SELECT n AS row_number_of FROM generate_series(1, $1::int) AS n ORDER BY n", [3]);
      assert.deepEqual(
        rows.map((row) => row.row_number_of),
        [1, 2, 3],
      );
      assert.equal((await driver.run("SELECT 1 WHERE $1::boolean", [false])).length, 0);
    },
  },
  {
    name: "carries a megabyte of bytes",
    async run({ driver }) {
      const bytes = new Uint8Array(randomBytes(1_048_576));
      const [row] = await driver.run("SELECT $1::bytea AS bytes", [bytes]);
      assert.equal(Buffer.compare(row?.bytes as Uint8Array, bytes), 0);
    },
  },
  {
    name: "carries a group: many rows as one JSON text of a megabyte, their bytes as hex",
    async run({ driver }) {
      const texts = ['quote \' backslash \\ emoji 🧾 "double"', "$1 ? :name %s", "\u0001\n", ""];
      const members = Array.from({ length: 16 }, (_, place) => {
        return { place, text: texts[place % texts.length], hex: randomBytes(32_768).toString("hex"), none: null };
      });
      const rows = await driver.run(
        `SELECT place, text, decode(hex, 'hex') AS bytes, none FROM json_to_recordset($1::text::json)
         AS member(place int, text text, hex text, none text) ORDER BY place`,
        [JSON.stringify(members)],
      );
      const hexOf = (bytes: unknown) => Buffer.from(bytes as Uint8Array).toString("hex");
      const read = rows.map(({ place, text, bytes, none }) => ({ place, text, hex: hexOf(bytes), none }));
      assert.deepEqual(read, members);
    },
  },
];
