import { describe, expect, it } from "vitest";
import { parseContentType } from "../../src/core/body/content-type.ts";
import { canonicalMultipart, multipartValue, parseMultipart } from "../../src/core/body/multipart.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const invalid = expect.objectContaining({ code: "idempotency_request_invalid" });
const unsupported = expect.objectContaining({ code: "idempotency_request_unsupported" });

const MEDIA = "multipart/form-data; boundary=XX";
const partsOf = (body: string | Uint8Array, limits = {}, type = MEDIA) => {
  const media = parseContentType(type);
  if (media === null) throw new Error("no media type");
  return parseMultipart(media, typeof body === "string" ? encode(body) : body, limits);
};
const field = (head: string, content = "1") => `--XX\r\n${head}\r\n\r\n${content}\r\n`;
const named = (name: string, more = "") => field(`Content-Disposition: form-data; name="${name}"${more}`);
const END = "--XX--";

describe("a multipart body", () => {
  it("has one frozen canonical form", () => {
    const parts = partsOf(named("a") + named("b", '; filename="f"\r\nContent-Type: Text/CSV; b=2; A=1') + END);
    const type = hex(encode('text/csv;a="1";b="2"'));
    expect(hex(canonicalMultipart(parts))).toBe(
      `01${"0100000001610000"}${"010000000131"}${"010000000162"}${"010000000166"}0100000014${type}${"010000000131"}`,
    );
  });

  it("begins with its delimiter, or behind a preamble, and delimiters may be padded", () => {
    for (const body of [named("a") + END, `\r\n${named("a")}${END}`, `pre --XX\r\n${named("a")}${END} epilogue`]) {
      expect(partsOf(body).map(({ name }) => name)).toEqual(["a"]);
    }
    const padded = (named("a") + named("b")).replaceAll("--XX\r\n", "--XX \t \r\n");
    expect(partsOf(padded + END).map(({ name }) => name)).toEqual(["a", "b"]);
    for (const body of ["", "XX", "--X", "pre", named("a"), `${named("a")}--XX`, `${named("a")}--XX-`]) {
      expect(() => partsOf(body), body).toThrow(invalid);
    }
    for (const wrong of ["--XX\r", "--XX\n", "--XXx\n", "--XX -", "--XX\rx", "--XXx\r\n", "--XX x\r\n"]) {
      expect(() => partsOf(named("a").replace("--XX\r\n", wrong) + END), wrong).toThrow(invalid);
    }
  });

  it("is refused where it has no delimiter or no end, also where its preamble imitates one", () => {
    // What stands so far behind the start could pass for the last delimiter's dashes.
    expect(() => partsOf("pream--")).toThrow("has no part");
    expect(() => partsOf(`pream--\r\n${named("a")}`)).toThrow("does not end");
    expect(partsOf(`pream--\r\n${named("a")}${END}`)).toHaveLength(1);
  });

  it("keeps its bytes as they came, within a larger buffer too", () => {
    const bytes = encode(`xx${named("a").replace("1", "\r\n--X")}${END}`);
    const [part] = partsOf(bytes.subarray(2));
    expect(Buffer.from(part?.bytes ?? []).toString()).toBe("\r\n--X");
  });

  it("has a boundary of the characters that RFC 2046 allows", () => {
    const withBoundary = (boundary: string) => {
      const body = (named("a") + END).replaceAll("XX", boundary);
      return partsOf(body, {}, `multipart/form-data; boundary="${boundary}"`);
    };
    for (const boundary of ["a", "'()+_,-./:=?09AZaz x", "b".repeat(70)])
      expect(withBoundary(boundary)).toHaveLength(1);
    for (const boundary of ["", "a ", "b".repeat(71), "a!", "!a", "é", "a;b"]) {
      expect(() => withBoundary(boundary), boundary).toThrow("boundary is missing or malformed");
    }
    expect(() => partsOf(named("a") + END, {}, "multipart/form-data")).toThrow("boundary is missing");
  });

  it("is limited in parts, and in the length of each part's header", () => {
    expect(partsOf(named("a") + named("b") + END, { maxParts: 2 })).toHaveLength(2);
    expect(() => partsOf(named("a") + named("b") + END, { maxParts: 1 })).toThrow("more than 1 parts");
    const header = `Content-Disposition: form-data; name="a"`;
    expect(partsOf(field(header) + END, { maxPartHeaderBytes: header.length })).toHaveLength(1);
    expect(() => partsOf(field(header) + END, { maxPartHeaderBytes: header.length - 1 })).toThrow("too long");
    const longest = `X: ${"x".repeat(8_192 - header.length - 5)}\r\n${header}`;
    expect(partsOf(field(longest) + END)).toHaveLength(1);
    expect(() => partsOf(field(`x${longest}`) + END)).toThrow("too long");
  });

  it("has header lines of a name and a value, blanks around the value, each name once", () => {
    const disposition = 'form-data; name="a"';
    for (const head of [`CONTENT-DISPOSITION:${disposition}`, `content-disposition: \t ${disposition} \t`]) {
      expect(partsOf(field(head) + END)[0]?.name).toBe("a");
    }
    expect(partsOf(field('Content-Disposition:form-data; name="a  b"') + END)[0]?.name).toBe("a  b");
    const good = `Content-Disposition: ${disposition}`;
    const odd = ["X", " X: 1", "X : 1", ": 1", "X: 1\nY: 2", "X: 1\rY: 2", "é: 1", "X: 1\r\nx: 2", "(X: 1"];
    for (const line of odd) expect(() => partsOf(field(`${good}\r\n${line}`) + END), line).toThrow(invalid);
    expect(partsOf(field(`${good}\r\nX:\r\n!#$%&'*+-.^_\`|~09AZaz: :`) + END)).toHaveLength(1);
    const bytes = Buffer.from(field(`${good}\r\nX: ?`) + END);
    bytes[bytes.indexOf("?")] = 0xff;
    expect(() => partsOf(bytes)).toThrow("header is not valid UTF-8");
  });

  it("has parts that are form-data with a name", () => {
    for (const head of ['Form-Data; name="a"', "form-data; NAME=a"]) {
      expect(partsOf(field(`Content-Disposition: ${head}`) + END)[0]?.name).toBe("a");
    }
    const wrong = ["form-data", 'attachment; name="a"', 'form-data; name="a', 'form-data; filename="a"', ""];
    for (const head of wrong) {
      expect(() => partsOf(field(`Content-Disposition: ${head}`) + END), head).toThrow("no proper Content-Disposition");
    }
    expect(() => partsOf(field("X: 1") + END)).toThrow("no proper Content-Disposition");
  });

  it("spells quotes as browsers do, and leaves other escapes alone", () => {
    const names = ['a\\"b', "a%22b", "a\\b", "a%41b", '\\"%22\\"'];
    expect(partsOf(names.map((name) => named(name)).join("") + END).map(({ name }) => name)).toEqual([
      ...['a"b', 'a"b', "a\\b", "a%41b"],
      '"""',
    ]);
  });

  it("takes transfer encodings that change nothing, and no others", () => {
    const encoded = (encoding: string) => partsOf(named("a", `\r\nContent-Transfer-Encoding: ${encoding}`) + END);
    for (const encoding of ["7bit", "8bit", "binary", "Binary", " \t8bit", "8bit \t"])
      expect(encoded(encoding)).toHaveLength(1);
    for (const encoding of ["base64", "quoted-printable", ""]) expect(() => encoded(encoding)).toThrow(unsupported);
    expect(() => partsOf(named("a", "; filename*=UTF-8''b") + END)).toThrow(unsupported);
    expect(() => partsOf(named("a", "\r\nContent-Type: text") + END)).toThrow(unsupported);
  });

  it("holds NUL in names, file names and text only where that is allowed", () => {
    const bodies = [
      named("a\0"),
      named("a", '; filename="\0"'),
      field('Content-Disposition: form-data; name="a"', "\0"),
    ];
    for (const body of bodies) {
      expect(() => multipartValue(partsOf(body + END))).toThrow("U+0000");
      expect(() => multipartValue(partsOf(body + END, { allowNul: true }), { allowNul: true })).not.toThrow();
    }
    expect(() => multipartValue(partsOf(`${bodies[2]}${END}`))).toThrow("A multipart text field holds");
  });

  it("gives text as text, files as files, and other parts as bytes of their own", () => {
    const bytes = encode("1");
    const body =
      named("none") +
      named("text", "\r\nContent-Type: text/csv") +
      named("xtext", "\r\nContent-Type: x-text/csv") +
      named("json", "\r\nContent-Type: application/json") +
      named("file", '; filename=""') +
      named("typed", '; filename="f"\r\nContent-Type: text/plain') +
      END;
    const parts = partsOf(body);
    const value = multipartValue(parts) as Record<string, unknown>;
    expect(value).toEqual({
      ...{ none: "1", text: "1", xtext: bytes, json: bytes },
      file: { filename: "", type: null, bytes },
      typed: { filename: "f", type: "text/plain", bytes },
    });
    expect(multipartValue(partsOf(field('Content-Disposition: form-data; name="a"', "\ufeffx") + END))).toEqual({
      a: "\ufeffx",
    });
    (value.json as Uint8Array)[0] = 0;
    expect(parts[3]?.bytes[0]).toBe(0x31);
    expect(() => multipartValue(partsOf(named("a[b][c]") + END), { maxDepth: 1 })).toThrow("nested too deeply");
    expect(multipartValue(partsOf(named("a[b][c]") + END), { maxDepth: 2 })).toEqual({ a: { b: { c: "1" } } });
  });
});
