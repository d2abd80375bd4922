import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bodyKindOf, parseContentType } from "../../src/core/body/content-type.ts";
import { formValue, type Pair, parsePairs } from "../../src/core/body/form.ts";
import { parsedRequestBody, type ReadBodyOptions, readRequestBody } from "../../src/core/body/read.ts";

const FORM = "application/x-www-form-urlencoded";
const encode = (text: string) => new TextEncoder().encode(text);
const read = (type: string | null, text: string, options?: ReadBodyOptions) =>
  readRequestBody(type, encode(text), options);
const form = (text: string) => formValue(parsePairs(text));
const invalid = { code: "idempotency_request_invalid" };
const unsupported = { code: "idempotency_request_unsupported" };

describe("the media type", () => {
  it("decides how a body is read", () => {
    const kinds: Record<string, string> = {
      "application/json": "json",
      "Application/JSON; charset=UTF-8": "json",
      "application/vnd.api+json": "json",
      "text/json": "json",
      [FORM]: "form",
      "multipart/form-data; boundary=x": "multipart",
      "multipart/mixed; boundary=x": "raw",
      "application/x-ndjson": "raw",
      "application/jsonp": "raw",
      "text/plain": "raw",
    };
    for (const [type, kind] of Object.entries(kinds)) expect(bodyKindOf(parseContentType(type))).toBe(kind);
    expect(bodyKindOf(null)).toBe("raw");
  });

  it("is parsed with its parameters, quoted or not", () => {
    const media = parseContentType(' Text/HTML ; Charset="UTF-8";; x = 1 ; y="a\\"; b"'.replace(" = ", "="));
    expect(media?.type).toBe("text/html");
    expect([...(media?.parameters ?? [])]).toEqual([
      ["charset", "utf-8"],
      ["x", "1"],
      ["y", 'a"; b'],
    ]);
  });

  it("is refused when malformed or ambiguous", () => {
    const malformed = [
      "",
      "json",
      "a/b/c",
      "application/json, text/plain",
      "a/b; x",
      'a/b; x="',
      "a/b; x=1; X=2",
      "a/b c",
    ];
    for (const type of malformed) assert.throws(() => parseContentType(type), unsupported);
  });

  it("may name no other charset than UTF-8 where text is read", () => {
    for (const charset of ["latin1", "utf-16", "us-ascii", ""]) {
      assert.throws(() => read(`application/json; charset="${charset}"`, "{}"), unsupported);
      assert.throws(() => read(`${FORM}; charset="${charset}"`, "a=1"), unsupported);
    }
    expect(read("application/json; charset=utf8", "{}").kind).toBe("json");
    expect(read("text/plain; charset=latin1", "x").kind).toBe("raw");
  });
});

describe("form and query pairs", () => {
  it("keep a lone name, an empty value and an empty name apart", () => {
    expect(parsePairs("")).toEqual([]);
    expect(parsePairs("x")).toEqual([["x", null]]);
    expect(parsePairs("x=")).toEqual([["x", ""]]);
    expect(parsePairs("=x")).toEqual([["", "x"]]);
    expect(parsePairs("&a=1&&b=2=3&")).toEqual([
      ["a", "1"],
      ["b", "2=3"],
    ]);
  });

  it("decode plus and percent in names and values, once", () => {
    expect(parsePairs("a%20b+c=%2B%2525%C3%A9")).toEqual([["a b c", "+%25é"]]);
  });

  it("refuse what lenient parsers would replace", () => {
    for (const text of [
      "a=%",
      "a=%4",
      "a=%zz",
      "a=%ff",
      "a=%C3",
      "a=%C0%80",
      "a=%ED%A0%80",
      "%=1",
      "a=%00",
      "a=\ud800",
    ]) {
      assert.throws(() => parsePairs(text), invalid);
    }
    expect(parsePairs("a=%00", { allowNul: true })).toEqual([["a", "\0"]]);
    assert.throws(() => readRequestBody(FORM, new Uint8Array([0x61, 0x3d, 0xff])), invalid);
  });

  it("are limited in number and finish on a megabyte of separators", () => {
    expect(parsePairs("a=1&".repeat(1_000))).toHaveLength(1_000);
    assert.throws(() => parsePairs("a=1&".repeat(1_001)), /more than 1000/);
    expect(parsePairs("&".repeat(1_000_000))).toEqual([]);
  });

  it("agree with URLSearchParams on everything well formed", () => {
    const pair = fc.tuple(fc.string({ unit: "grapheme", minLength: 1 }), fc.string({ unit: "grapheme" }));
    fc.assert(
      fc.property(fc.array(pair), (pairs) => {
        fc.pre(!JSON.stringify(pairs).includes("\\u0000"));
        expect(parsePairs(new URLSearchParams(pairs).toString())).toEqual(pairs);
      }),
    );
  });
});

describe("the value of a form", () => {
  it("nests by brackets and collects repeated names", () => {
    expect(form("a=1&b=&c")).toEqual({ a: "1", b: "", c: "" });
    expect(form("metadata[a]=1&metadata[b][c]=2")).toEqual({ metadata: { a: "1", b: { c: "2" } } });
    expect(form("a=1&a=2")).toEqual({ a: ["1", "2"] });
    expect(form("a[]=1")).toEqual({ a: ["1"] });
    expect(form("a[b][]=1&a[b][]=2")).toEqual({ a: { b: ["1", "2"] } });
    expect(form("a[0][n]=x&a[1][n]=y")).toEqual({ a: [{ n: "x" }, { n: "y" }] });
    expect(form("a[1]=y&a[0]=x")).toEqual({ a: ["x", "y"] });
    expect(form("a[1]=y&a[2]=x")).toEqual({ a: { 1: "y", 2: "x" } });
    expect(form("a%5Bb%5D=1")).toEqual({ a: { b: "1" } });
  });

  it("takes names whose brackets do not pair as they stand", () => {
    for (const name of ["a[", "a]", "a[b", "a[b]c", "a[[b]]", "a]b[c]", "[a]", "[]", "a[b]]", "a[b][c"]) {
      expect(form(`${encodeURIComponent(name)}=1`)).toEqual({ [name]: "1" });
    }
  });

  it("refuses a name used in two ways", () => {
    for (const text of [
      "a=1&a[b]=2",
      "a[b]=2&a=1",
      "a[]=1&a=2",
      "a=1&a[]=2",
      "a[]=1&a[b]=2",
      "a[][b]=1",
      "a[b][][c]=1",
    ]) {
      assert.throws(() => form(text), invalid);
    }
  });

  it("pollutes no prototype and keeps such names as data", () => {
    const value = form("__proto__[admin]=1&constructor[prototype][admin]=1&a[__proto__][admin]=1") as {
      admin?: string;
      a: { admin?: string };
    };
    expect(value.admin).toBeUndefined();
    expect(value.a.admin).toBeUndefined();
    expect(({} as { admin?: string }).admin).toBeUndefined();
    expect(Object.keys(value)).toEqual(["__proto__", "constructor", "a"]);
  });

  it("is limited in depth", () => {
    expect(() => form(`a${"[b]".repeat(64)}=1`)).not.toThrow();
    assert.throws(() => form(`a${"[b]".repeat(65)}=1`), /deep/);
    assert.throws(() => form(`a${"[b]".repeat(100_000)}=1`), /deep/);
    const pairs: Pair[] = [[`a${"[b]".repeat(5_000)}`, "1"]];
    assert.throws(() => formValue(pairs, { maxDepth: 1_000_000 }), /deep/);
  });
});

const part = (head: string, content: string) => `\r\nContent-Disposition: ${head}\r\n\r\n${content}\r\n`;
const multipart = (boundary: string, ...parts: string[]) =>
  `${parts.map((text) => `--${boundary}${text}`).join("")}--${boundary}--\r\n`;
const readParts = (...parts: string[]) => read("multipart/form-data; boundary=XX", multipart("XX", ...parts));

describe("a multipart body", () => {
  it("reads what the platform's FormData writes", async () => {
    const data = new FormData();
    data.append("metadata[a]", "é\r\n--x");
    data.append("tag", "1");
    data.append("tag", "2");
    data.append("file", new Blob([new Uint8Array([0, 13, 10, 45, 45, 255])], { type: "Image/PNG" }), 'a"b.png');
    const response = new Response(data);
    const bytes = new Uint8Array(await response.arrayBuffer());
    const body = readRequestBody(response.headers.get("content-type"), bytes);
    expect(body.kind).toBe("multipart");
    expect(body.value()).toEqual({
      metadata: { a: "é\r\n--x" },
      tag: ["1", "2"],
      file: { filename: 'a"b.png', type: "image/png", bytes: new Uint8Array([0, 13, 10, 45, 45, 255]) },
    });
  });

  it("does not depend on boundary, preamble and epilogue", () => {
    const parts = [part('form-data; name="a"', "1"), part('form-data; name="b"; filename="f"', "2")];
    const one = read("multipart/form-data; boundary=XX", multipart("XX", ...parts));
    const other = read('multipart/form-data; boundary="Y Y"', `preamble\r\n${multipart("Y Y", ...parts)}epilogue`);
    assert.deepEqual(other.canonical(), one.canonical());
    expect(other.mediaType).toBe(one.mediaType);
  });

  it("tells parts apart by name, filename, type, bytes and order", () => {
    const bodies = [
      readParts(part('form-data; name="a"', "1")),
      readParts(part('form-data; name="b"', "1")),
      readParts(part('form-data; name="a"', "2")),
      readParts(part('form-data; name="a"; filename="f"', "1")),
      readParts(part('form-data; name="a"; filename=""', "1")),
      readParts(part('form-data; name="a"\r\nContent-Type: text/csv', "1")),
      readParts(part('form-data; name="a"', "1"), part('form-data; name="b"', "2")),
      readParts(part('form-data; name="b"', "2"), part('form-data; name="a"', "1")),
    ];
    expect(new Set(bodies.map(({ canonical }) => Buffer.from(canonical()).toString("hex"))).size).toBe(bodies.length);
  });

  it("takes an empty field and no fields at all", () => {
    expect(readParts(part('form-data; name="a"', "")).value()).toEqual({ a: "" });
    expect(readParts().value()).toEqual({});
  });

  it("refuses what readers could take apart in two ways", () => {
    const type = "multipart/form-data; boundary=XX";
    const bodies = [
      "no boundary at all",
      `--XX${part('form-data; name="a"', "1")}`,
      `--XX${part('form-data; name="a"', "1")}--XXY--`,
      `--XXY${part('form-data; name="a"', "1")}--XX--`,
      `--XX\n${part('form-data; name="a"', "1")}--XX--`,
      multipart("XX", "\r\n\r\n1\r\n"),
      multipart("XX", "\r\nContent-Type: text/plain\r\n\r\n1\r\n"),
      multipart("XX", part("form-data", "1")),
      multipart("XX", part('attachment; name="a"', "1")),
      multipart("XX", part('form-data; name="a"; name="b"', "1")),
      multipart("XX", part('form-data; name="a"\r\nContent-Disposition: form-data; name="b"', "1")),
      multipart("XX", part('form-data; name="a"\r\n folded: 1', "1")),
      multipart("XX", part('form-data; name="a\0"', "1")),
      multipart("XX", part(`form-data; name="${"a".repeat(9_000)}"`, "1")),
      multipart("XX", ...Array.from({ length: 1_001 }, () => part('form-data; name="a"', "1"))),
    ];
    for (const body of bodies) assert.throws(() => read(type, body), invalid);
    for (const odd of ["multipart/form-data", "multipart/form-data; boundary=", 'multipart/form-data; boundary="a "']) {
      assert.throws(() => read(odd, multipart("XX")), odd.endsWith("=") ? unsupported : invalid);
    }
  });

  it("refuses transfer encodings and filename*", () => {
    assert.throws(
      () => readParts(part('form-data; name="a"\r\nContent-Transfer-Encoding: base64', "MQ==")),
      unsupported,
    );
    assert.throws(() => readParts(part("form-data; name=\"a\"; filename*=UTF-8''b", "1")), unsupported);
  });

  it("refuses text fields that are not UTF-8, or hold NUL, when their value is asked for", () => {
    const field = multipart("XX", part('form-data; name="a"', "?")).split("?");
    const bytes = new Uint8Array([...encode(field[0] ?? ""), 0xff, ...encode(field[1] ?? "")]);
    assert.throws(() => readRequestBody("multipart/form-data; boundary=XX", bytes).value(), invalid);
    assert.throws(() => readParts(part('form-data; name="a"', "\0")).value(), invalid);
  });

  it("finishes on a megabyte of almost delimiters", () => {
    const content = "\r\n--X".repeat(200_000);
    expect(readParts(part('form-data; name="a"', content)).value()).toEqual({ a: content });
  });
});

describe("reading a request body", () => {
  it("gives JSON without loss", () => {
    const body = read("application/json", '{"amount":9007199254740993,"rate":0.1}');
    expect(body.value()).toEqual({ amount: 9007199254740993n, rate: 0.1 });
    const exact = read("application/json", '{"rate":0.1000000000000000055}');
    assert.throws(() => exact.value(), invalid);
    expect(read("application/json", "[2.50]", { fractions: "text" }).value()).toEqual(["2.5"]);
  });

  it("gives no value for no body, and the bytes for anything else", () => {
    const none = readRequestBody("application/json", new Uint8Array());
    expect([none.kind, none.value(), none.mediaType]).toEqual(["none", undefined, null]);
    expect(read("text/plain", "x").value()).toEqual(encode("x"));
    expect(read(null, "x").kind).toBe("raw");
  });

  it("takes limits for every kind", () => {
    assert.throws(() => read("application/json", "[[1]]", { maxDepth: 1 }), invalid);
    assert.throws(() => read(FORM, "a=1&b=2", { maxPairs: 1 }), invalid);
    expect(read("application/json", '"\\u0000"', { allowNul: true }).value()).toBe("\0");
  });

  it("may ignore the order of a form's names, never that of one name", () => {
    const sorted = (text: string) =>
      Buffer.from(read(FORM, text, { formOrder: "by_name" }).canonical()).toString("hex");
    expect(sorted("b=2&a=1")).toBe(sorted("a=1&b=2"));
    expect(sorted("a=2&a=1")).not.toBe(sorted("a=1&a=2"));
    expect(read(FORM, "b=2&a=1", { formOrder: "by_name" }).value()).toEqual({ a: "1", b: "2" });
  });
});

describe("a body that the framework parsed", () => {
  it("compares like the JSON it came from", () => {
    const text = '{"b":[1.50,"é"],"a":null}';
    const parsed = parsedRequestBody("application/json", JSON.parse(text));
    assert.deepEqual(
      Buffer.from(parsed.canonical() as Uint8Array).toString(),
      read("application/json", text).canonical(),
    );
    expect(parsed.kind).toBe("json");
    expect(parsedRequestBody("application/json", undefined).kind).toBe("none");
    expect(parsedRequestBody("application/json", null).kind).toBe("json");
  });

  it("is refused where the parser may have changed a number, unless the route accepts it", () => {
    const value = JSON.parse('{"amount":9007199254740993}') as unknown;
    assert.throws(() => parsedRequestBody("application/json", value), /\$\.amount/);
    expect(parsedRequestBody("application/json", value, { allowUnsafeNumbers: true }).value()).toBe(value);
  });
});
