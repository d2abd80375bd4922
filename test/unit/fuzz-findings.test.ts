/** What fuzzing has found, each in its smallest form, so that it stays mended. */
import { describe, expect, it } from "vitest";
import { exchangeOf } from "../../lab/fuzz/made-exchange.ts";
import { databaseUrl, secretsOf } from "../../src/cli/database-url.ts";
import { readStored } from "../../src/client/stored-form.ts";
import { parseMultipart } from "../../src/core/body/multipart.ts";
import { decodeValue, encodeValue } from "../../src/core/codec.ts";
import { decodeContent } from "../../src/core/stored-outcome.ts";
import { type BodyRules, readExchangeBody } from "../../src/http/body.ts";
import { firstSentAtMs } from "../../src/http/first-sent.ts";
import { ietf } from "../../src/http/profiles/ietf.ts";
import { instantOrNull, number } from "../../src/stores/postgres/rows.ts";

const broken = expect.objectContaining({ code: "oncekey_store_broken" });
const thrown = (run: () => unknown): unknown => {
  try {
    return { gave: run() };
  } catch (error) {
    return error;
  }
};

describe("what fuzzing has found", () => {
  it("a part's header of blanks and a bare line feed took quadratic time", () => {
    const media = { type: "multipart/form-data", parameters: new Map([["boundary", "X"]]) };
    const body = Buffer.from(`--X\r\nx:${" ".repeat(4_000_000)}\n\r\n\r\n1\r\n--X--`);
    // Before: half an hour.
    expect(() => parseMultipart(media, body, { maxPartHeaderBytes: 1e9 })).toThrow(/malformed/);
  });

  it("a database URL of many :// took quadratic time to be searched for its password", () => {
    expect(secretsOf([`x${"://".repeat(1_000_000)}`], {})).toHaveLength(1);
    expect(secretsOf(["a%://u:p%40w@h"], {})).toEqual(["a%://u:p%40w@h", "p%40w", "p@w"]);
    const line = {
      operands: [],
      values: new Map([["database", "x://u:secret@h"]]),
      lists: new Map(),
      switches: new Set<string>(),
    };
    expect(thrown(() => databaseUrl(line, {}))).not.toMatchObject({ message: expect.stringContaining("secret") });
  });

  it("a stored header with a damaged byte was read with another character in its place", () => {
    const content = Buffer.concat([Buffer.from([1, 0, 0, 0, 11]), Buffer.from('[["a\xff","b"]]', "latin1")]);
    content.writeUInt32BE(content.length - 5, 1);
    expect(thrown(() => decodeContent(content))).toEqual(broken);
  });

  it("recorded values that no release has written were read", () => {
    const texts = [
      ...['{"$bytes":"D"}', '{"$bytes":"A A="}', '{"$date":"2026"}', '{"$date":"2026-01-31"}', '{"$bigint":"007"}'],
      ...['{"$bigint":"-0"}', "1e400", '[{"$undefined":true}]', '{"$$a":1,"$date":"x"}', '{"\\u0000":1,"$bigint":"1"}'],
    ];
    for (const text of texts)
      expect(
        thrown(() => decodeValue(Buffer.from(`\u0001${text}`))),
        text,
      ).toEqual(broken);
  });

  it("a recorded value nested beyond all limits ended the stack", () => {
    const nested = (depth: number) => Buffer.from(`\u0001${"[".repeat(depth)}${"]".repeat(depth)}`);
    expect(thrown(() => decodeValue(nested(200_000)))).toEqual(broken);
    expect(thrown(() => decodeValue(nested(1_001)))).toEqual(broken);
    expect(Buffer.from(encodeValue(decodeValue(nested(1_000)))).equals(nested(1_000))).toBe(true);
    const deepest = Buffer.from(`\u0001${"[".repeat(1_000)}{"$bigint":"1"}${"]".repeat(1_000)}`);
    expect(Buffer.from(encodeValue(decodeValue(deepest))).equals(deepest)).toBe(true);
  });

  it("a refused number repeated a member's name that is data", async () => {
    const rules: BodyRules = {
      ...{ limitBytes: 1_000, accepts: ["json"], fractions: "exact", ordinaryNumbers: true, allowUnsafeNumbers: false },
    };
    const body = Buffer.from('{"jane@example.test":{"amount":9007199254740993}}');
    const reading = readExchangeBody(exchangeOf({ "content-type": ["application/json"] }, { body }), rules);
    await expect(reading).rejects.toThrow(/at \$\[\?\]\.amount/);
  });

  it("a date between no-break spaces was taken for one", () => {
    const read = (line: string) =>
      thrown(() => firstSentAtMs(ietf, exchangeOf({ "idempotency-first-sent": [line] }), true));
    expect(read("\u00a0Sun, 06 Nov 1994 08:49:37 GMT\u00a0")).toMatchObject({ code: "idempotency_request_invalid" });
    expect(read(" Sun, 06 Nov 1994 08:49:37 GMT\t")).toEqual({ gave: 784_111_777_000 });
  });

  it("a number column of empty or blank text was read as 0", () => {
    for (const text of ["", " ", "\n"]) expect(thrown(() => number({ a: text }, "a"))).toEqual(broken);
    expect(number({ a: "-12" }, "a")).toBe(-12);
  });

  it("a number column of text that PostgreSQL never writes was read as a number", () => {
    for (const text of ["0 ", "\n1", "0x10", "1_0", "+1", "1."])
      expect(
        thrown(() => number({ a: text }, "a")),
        text,
      ).toEqual(broken);
    for (const text of ["0", "-1.5", "1e+20", "9007199254740993", "Infinity"])
      expect(number({ a: text }, "a")).toBe(Number(text));
  });

  it("an instant beyond the years of a Date was read as an invalid one", () => {
    const tooLate = ["14294967296000000", Number.POSITIVE_INFINITY, -8.64e15 - 1];
    for (const value of tooLate) expect(thrown(() => instantOrNull({ a: value }, "a"))).toEqual(broken);
    expect(instantOrNull({ a: "8640000000000000" }, "a")).toEqual(new Date(8.64e15));
    expect(instantOrNull({ a: null }, "a")).toBeNull();
  });

  it("a kept submission that no attempt can send was taken for a sound one", () => {
    const request = {
      method: "POST",
      url: "https://api.test/",
      headers: [],
      bodyBase64: null,
      keyHeader: "idempotency-key",
    };
    const times = { createdAt: 1, firstSentAt: null, attempts: 0, spentMs: 0, spentAt: 1, retentionMs: null };
    const settled = { kind: "refused", at: 1, replayed: false, status: 400, headers: [], bodyBase64: "" };
    const kept = (more: object) => ({ form: 1, name: "n", key: "k", request, ...times, settled: null, ...more });
    const damages = [
      ...[{ headers: [1] }, { headers: [["a"]] }, { headers: [["", "b"]] }, { headers: [["a", "\n b\n c"]] }],
      ...[{ url: "" }, { method: "a b" }, { bodyBase64: "!" }, { keyHeader: "" }],
    ].map((damage) => kept({ request: { ...request, ...damage } }));
    const answers = [{ headers: [1] }, { headers: [["", ""]] }, { bodyBase64: "!" }].map((damage) =>
      kept({ settled: { ...settled, ...damage } }),
    );
    expect(readStored(kept({ settled }), "n", "It")).toEqual(kept({ settled }));
    for (const value of [...damages, ...answers, kept({ key: "é\u0100" })]) {
      expect(
        thrown(() => readStored(value, "n", "It")),
        JSON.stringify(value),
      ).toEqual(broken);
    }
  });
});
