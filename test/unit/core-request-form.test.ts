import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { parsePairs } from "../../src/core/body/form.ts";
import { readRequestBody } from "../../src/core/body/read.ts";
import { fingerprintRing } from "../../src/core/fingerprint.ts";
import {
  canonicalPath,
  canonicalQuery,
  inputParts,
  type RawForm,
  type WireForm,
  wireDigestParts,
  wireParts,
} from "../../src/core/request-form.ts";

const ring = fingerprintRing();
const encode = (text: string) => new TextEncoder().encode(text);

interface Sent {
  method?: string;
  path?: string;
  query?: string;
  type?: string | null;
  body?: string;
  headers?: WireForm["headers"];
  omitQuery?: string[];
}

function wire({
  method = "POST",
  path = "/p",
  query = "",
  type = "application/json",
  body = "{}",
  ...rest
}: Sent): string {
  const form: WireForm = {
    method,
    operation: "o",
    path,
    query: parsePairs(query),
    body: readRequestBody(type, encode(body)),
    headers: rest.headers ?? [],
    omitQuery: rest.omitQuery ?? [],
  };
  return Buffer.from(ring.fingerprint(ring.form("wire"), wireParts(form))).toString("hex");
}

const json = (body: string): Sent => ({ body });
const form = (body: string): Sent => ({ body, type: "application/x-www-form-urlencoded" });
const multipart = (boundary: string): Sent => ({
  type: `multipart/form-data; boundary=${boundary}`,
  body: `--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--${boundary}--\r\n`,
});

const SAME: [string, Sent, Sent][] = [
  ["members in another order", json('{"b":1,"a":2}'), json('{"a":2,"b":1}')],
  ["members of nested objects in another order", json('[{"b":{"d":1,"c":2}}]'), json('[{"b":{"c":2,"d":1}}]')],
  ["1 and 1.0", json("[1]"), json("[1.0]")],
  ["1 and 1e0", json("[1]"), json("[1e0]")],
  ["1 and 10e-1", json("[1]"), json("[10e-1]")],
  ["0 and -0", json("[0]"), json("[-0]")],
  ["an escape and its character", json('"\\u00e9\\/"'), json('"é/"')],
  ["with and without a byte order mark", json('\ufeff{"a":1}'), json('{"a":1}')],
  ["insignificant whitespace", json('{"a":1}'), json(' {\r\n "a" :\t1 } \n')],
  ["a space as plus or percent", form("a=b+c"), form("a=b%20c")],
  ["query names in another order", { query: "x=1&y=2" }, { query: "y=2&x=1" }],
  ["hex case in the path", { path: "/p/%e9" }, { path: "/p/%E9" }],
  ["needless percent-encoding", { path: "/%7Eu/%61" }, { path: "/~u/a" }],
  ["another multipart boundary", multipart("X"), multipart("Y")],
  ["a charset on JSON", { type: "application/json" }, { type: "application/json; charset=utf-8" }],
  ["another case of the media type", { type: "application/json" }, { type: "Application/JSON" }],
  ["another case of a header's name", { headers: [["X-Version", "1"]] }, { headers: [["x-version", "1"]] }],
  ["an omitted query name", { query: "x=1&t=2", omitQuery: ["t"] }, { query: "x=1", omitQuery: ["t"] }],
];

const DIFFERENT: [string, Sent, Sent][] = [
  ["array elements in another order", json("[1,2]"), json("[2,1]")],
  ["integers beyond 2^53", json("[9007199254740993]"), json("[9007199254740992]")],
  ["fractions beyond a double", json("[0.1]"), json("[0.1000000000000000055]")],
  ["numbers beyond a double's range", json("[1e400]"), json("[1e401]")],
  ["numbers below a double's range", json("[1e-400]"), json("[0]")],
  ["NFC and NFD", json('"\u00e9"'), json('"e\u0301"')],
  ["no body and {}", json(""), json("{}")],
  ["no body and null", json(""), json("null")],
  ["no body and []", json(""), json("[]")],
  ['no body and ""', json(""), json('""')],
  ["{} and null", json("{}"), json("null")],
  ['[] and ""', json("[]"), json('""')],
  ["a trailing space in a string", json('"x"'), json('"x "')],
  ["null and absent", json('{"a":null}'), json("{}")],
  ['"1" and 1', json('["1"]'), json("[1]")],
  ["form pairs in another order", form("a=1&b=2"), form("b=2&a=1")],
  ["a repeated query name in another order", { query: "x=1&x=2" }, { query: "x=2&x=1" }],
  ["an empty value and a lone name", { query: "x=" }, { query: "x" }],
  ["a lone name and none", { query: "x" }, { query: "" }],
  ["an empty value and none", { query: "x=" }, { query: "" }],
  ["an encoded slash and a slash", { path: "/p/a%2Fb" }, { path: "/p/a/b" }],
  ["a trailing slash", { path: "/p" }, { path: "/p/" }],
  ["another case of the path", { path: "/p" }, { path: "/P" }],
  ["a media type that may select a version", { type: "application/json" }, { type: "application/vnd.x+json" }],
  ["another method", { method: "POST" }, { method: "PUT" }],
  ["a form and JSON of the same bytes", { body: "1", type: "application/json" }, form("1")],
  ["text in another charset", { type: "text/plain", body: "x" }, { type: "text/plain; charset=latin1", body: "x" }],
  ["a chosen header's value", { headers: [["x-version", "1"]] }, { headers: [["x-version", "2"]] }],
  [
    "a header sent twice",
    { headers: [["x-version", "1"]] },
    {
      headers: [
        ["x-version", "1"],
        ["x-version", "1"],
      ],
    },
  ],
  ["a pair moved from query to body", { query: "a=1", ...form("b=2") }, { query: "b=2", ...form("a=1") }],
  ["a dot segment", { path: "/p/../q" }, { path: "/q" }],
];

const REFUSED: [string, Sent][] = [
  ["an absurd exponent", json("1e999999999")],
  ["ten thousand digits", json("1".repeat(10_000))],
  ["a repeated member", json('{"a":1,"a":2}')],
  ["a lone surrogate", json('"\\ud800"')],
  ["an array of depth 10,000", json("[".repeat(10_000) + "]".repeat(10_000))],
  ["a trailing comma", json('{"a":1,}')],
  ["a leading zero", json("01")],
  ["a plus sign", json("+1")],
  ["NaN", json("NaN")],
  ["trailing bytes", json("{}x")],
  ["a malformed percent-encoding in the path", { path: "/p/%zz" }],
  ["a cut percent-encoding in the path", { path: "/p%4" }],
  ["a percent sign at the end of the path", { path: "/p%" }],
  ["a line feed behind a percent sign", { path: "/%\n1" }],
];

describe("the wire form of a request", () => {
  for (const [what, a, b] of SAME) {
    it(`is the same for ${what}`, () => expect(wire(a)).toBe(wire(b)));
  }
  for (const [what, a, b] of DIFFERENT) {
    it(`differs for ${what}`, () => expect(wire(a)).not.toBe(wire(b)));
  }
  for (const [what, sent] of REFUSED) {
    it(`is refused for ${what}`, () => assert.throws(() => wire(sent), { code: "idempotency_request_invalid" }));
  }

  it("has one frozen pre-image", () => {
    const fingerprint = wire({ query: "b=1&a", path: "/v1/%7Eacme", body: '{"b":1.0,"a":[]}', headers: [["V", "2"]] });
    const hash = createHash("sha256");
    const framed = (part: string | Uint8Array | null): Buffer => {
      if (part === null) return Buffer.from([0]);
      const content = Buffer.from(part as string);
      const head = Buffer.alloc(5);
      head[0] = 1;
      head.writeUInt32BE(content.length, 1);
      return Buffer.concat([head, content]);
    };
    const inner = (...parts: (string | null)[]) => Buffer.concat([Buffer.from([1]), ...parts.map(framed)]);
    const parts = ["wire", "wire", "POST", "o", "/v1/~acme", inner("a", null, "b", "1"), "json", "application/json"];
    for (const part of [Buffer.from([1]), ...[...parts, '{"a":[],"b":1}', inner("v", "2")].map(framed)])
      hash.update(part);
    expect(fingerprint).toBe(`010100${hash.digest("hex")}`);
  });
});

describe("the path and the query", () => {
  it("keep what is data", () => {
    expect(canonicalPath("/a%2fb%3F%25%e2%82%ac//./..")).toBe("/a%2Fb%3F%25%E2%82%AC//./..");
    expect(canonicalPath("/%41%2D%2e%5F%7e%30")).toBe("/A-._~0");
    expect(canonicalPath("/%2541")).toBe("/%2541");
  });

  it("leave out nothing where nothing is to be left out", () => {
    expect(canonicalQuery(parsePairs("b=1&a=2"))).toEqual([
      ["a", "2"],
      ["b", "1"],
    ]);
  });

  it("sort names stably by code unit and leave out the omitted ones", () => {
    expect(canonicalQuery(parsePairs("b=2&a=2&B=1&a=1&é=1&b"), ["B"])).toEqual([
      ["a", "2"],
      ["a", "1"],
      ["b", "2"],
      ["b", null],
      ["é", "1"],
    ]);
  });
});

describe("the exact form of a request", () => {
  const base: RawForm = {
    method: "POST",
    operation: "o",
    target: "/p?x=1",
    contentType: "application/json",
    contentEncoding: null,
    headers: [["v", "1"]],
    bytes: encode("{}"),
  };
  const digest = (form: RawForm) =>
    Buffer.from(ring.fingerprint(ring.form("wire"), wireDigestParts(form))).toString("hex");

  it("has frozen parts: another release must know a retry by them", () => {
    expect(wireDigestParts({ ...base, contentEncoding: "gzip" })).toEqual([
      ...["bytes", "POST", "o", "/p?x=1", "application/json", "gzip"],
      new Uint8Array(Buffer.from("01" + "0100000001" + "76" + "0100000001" + "31", "hex")),
      encode("{}"),
    ]);
    expect(wireDigestParts({ ...base, contentType: null, headers: [] })).toEqual([
      ...["bytes", "POST", "o", "/p?x=1", null, null, Uint8Array.of(1), encode("{}")],
    ]);
  });

  it("differs whenever anything differs that a fingerprint may depend on", () => {
    const forms: RawForm[] = [
      base,
      { ...base, method: "PUT" },
      { ...base, operation: "p" },
      { ...base, target: "/p?x=2" },
      { ...base, contentType: "application/json; charset=utf-8" },
      { ...base, contentType: null },
      { ...base, contentEncoding: "gzip" },
      { ...base, headers: [["v", "2"]] },
      { ...base, headers: [] },
      { ...base, bytes: encode("{} ") },
      { ...base, bytes: new Uint8Array() },
    ];
    expect(new Set(forms.map(digest)).size).toBe(forms.length);
    expect(digest({ ...base, headers: [["V", "1"]] })).toBe(digest(base));
  });
});

describe("the input form of a request", () => {
  const digest = (input: unknown, more: { operation?: string; dropped?: unknown } = {}) => {
    const parts = inputParts({ operation: "o", input, ...more });
    return Buffer.from(ring.fingerprint(ring.form("input"), parts)).toString("hex");
  };

  it("depends on operation, input and what validation dropped", () => {
    const all = [
      digest({ body: 1 }),
      digest({ body: "1" }),
      digest({ body: 1 }, { operation: "p" }),
      digest({ body: 1 }, { dropped: { a: 1 } }),
      digest({ body: 1 }, { dropped: null }),
      digest({ body: 1, query: { a: "1" } }),
    ];
    expect(new Set(all).size).toBe(all.length);
    expect(digest({ body: 1, query: {}, params: {} })).toBe(digest({ body: 1 }));
    expect(digest({ query: 2, body: 1n })).toBe(digest({ body: 1, query: 2, params: undefined }));
  });

  it("has frozen parts: another release must know a retry by them", () => {
    expect(inputParts({ operation: "o", input: { body: { b: 1, a: [] } } })).toEqual([
      ...["input", "o", encode('{"body":{"a":[],"b":1}}'), null],
    ]);
    expect(inputParts({ operation: "o", input: { body: {}, params: {}, query: null }, dropped: { body: 1 } })).toEqual([
      ...["input", "o", encode('{"body":{},"query":null}'), encode('{"body":1}')],
    ]);
  });

  it("leaves out empty parts, but no body and nothing of what is no object of parts", () => {
    const form = (input: unknown) => Buffer.from(inputParts({ operation: "o", input })[2] as Uint8Array).toString();
    expect(form({ body: [], params: {}, query: [], other: "" })).toBe('{"body":[],"other":""}');
    const others = [null, "text", 7, [{}, 1], true];
    expect(others.map(form)).toEqual(["null", '"text"', "7", "[{},1]", "true"]);
  });

  it("tells a date from its text", () => {
    expect(digest({ body: new Date(0) })).not.toBe(digest({ body: new Date(0).toISOString() }));
  });
});
