import { describe, expect, it } from "vitest";
import { bodyKindOf, checkCharset, comparedType, parseContentType } from "../../src/core/body/content-type.ts";
import { canonicalPairs, formValue, type Pair, parsePairs, sortPairs } from "../../src/core/body/form.ts";
import { nest } from "../../src/core/body/nest.ts";
import { parseParameters } from "../../src/core/body/parameters.ts";
import { parsedRequestBody, readRequestBody } from "../../src/core/body/read.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const hex = (bytes: Uint8Array | string) => Buffer.from(bytes as Uint8Array).toString("hex");
const invalid = expect.objectContaining({ code: "idempotency_request_invalid" });
const unsupported = expect.objectContaining({ code: "idempotency_request_unsupported" });

describe("a header value with parameters", () => {
  const parsed = (text: string) => {
    const found = parseParameters(text);
    return found === null ? null : [found.value, Object.fromEntries(found.parameters)];
  };

  it("is taken apart at its semicolons, with blanks around them", () => {
    expect(parsed("a")).toEqual(["a", {}]);
    expect(parsed(' \ta ; \t B=c\t;d="e" ')).toEqual(["a", { b: "c", d: "e" }]);
    expect(parsed("a;;b=c;")).toEqual(["a", { b: "c" }]);
    expect(parsed('a;b=""')).toEqual(["a", { b: "" }]);
    expect(parsed('a;b="x;y=\\"z\\\\"')).toEqual(["a", { b: 'x;y="z\\' }]);
    expect(parsed("a;!#$%&'*+-.^_`|~09azAZ=!#$%&'*+-.^_`|~09azAZ")?.[1]).toEqual({
      "!#$%&'*+-.^_`|~09azaz": "!#$%&'*+-.^_`|~09azAZ",
    });
  });

  it("is refused where readers could disagree", () => {
    const malformed = [
      "",
      " ",
      ";a=b",
      "a b",
      "a;b",
      "a;b=",
      "a;=c",
      "a;b c",
      'a;b="c',
      'a;b="c"d',
      'a;b=c"',
      "a;b=c d",
    ];
    for (const text of [...malformed, "a;b=1;B=1", 'a;b="\r"', 'a;b="\n"', 'a;b="\\\n"', "a;b =c", "a;b= c", "a;é=1"]) {
      expect(parsed(text), text).toBeNull();
    }
  });

  it("means by an escape what the caller says", () => {
    expect(parseParameters('a;b="x\\y"', (quoted) => `<${quoted}>`)?.parameters.get("b")).toBe("<x\\y>");
    expect(parseParameters("a;b=x", (quoted) => `<${quoted}>`)?.parameters.get("b")).toBe("x");
  });
});

describe("a media type", () => {
  it("is one token, a slash, and another one", () => {
    expect(parseContentType(null)).toBeNull();
    expect(parseContentType("application/json")).toEqual({ type: "application/json", parameters: new Map() });
    expect(parseContentType("A9!#$%&'*+-.^_`|~z/A9!#$%&'*+-.^_`|~z")?.type).toBe(
      "a9!#$%&'*+-.^_`|~z/a9!#$%&'*+-.^_`|~z",
    );
    for (const type of ["/b", "a/", "a", "(a/b", "a/b)", "a/b/c", "a\u00e9/b", "a/b\u00e9"]) {
      expect(() => parseContentType(type), type).toThrow(unsupported);
    }
  });

  it("says how the body is read, by its whole name", () => {
    const kind = (type: string) => bodyKindOf(parseContentType(type));
    for (const type of ["text/json", "a/b+json", "application/x-amz-json-1.0", "application/x-amz-json-1.1"]) {
      expect(kind(type)).toBe("json");
    }
    const amz = ["application/x-amz-json-1.2", "xapplication/x-amz-json-1.0", "application/x-amz-json-1.01"];
    const others = ["application/x-amz-json-1x0", "a/b+jsonx", "a+json/b", "text/jsonx", "x-text/json"];
    for (const type of [...amz, ...others, "multipart/form-datax", "application/x-www-form-urlencodedx"]) {
      expect(kind(type), type).toBe("raw");
    }
    expect(kind("multipart/form-data")).toBe("multipart");
    expect(kind("application/x-www-form-urlencoded")).toBe("form");
  });

  it("is compared without what changes nothing, and with all else, in one order", () => {
    const compared = (type: string) => {
      const media = parseContentType(type);
      return comparedType(media, bodyKindOf(media));
    };
    expect(comparedType(null, "raw")).toBeNull();
    expect(compared("A/B")).toBe("a/b");
    expect(compared("application/json; charset=utf-8")).toBe("application/json");
    expect(compared("application/json; v=2; charset=utf-8; a=1")).toBe('application/json;a="1";v="2"');
    expect(compared("application/json; boundary=x")).toBe('application/json;boundary="x"');
    expect(compared("application/x-www-form-urlencoded; charset=utf-8")).toBe("application/x-www-form-urlencoded");
    expect(compared("multipart/form-data; boundary=x; charset=UTF-8; v=1")).toBe('multipart/form-data;v="1"');
    expect(compared("text/plain; Charset=Latin1; boundary=x")).toBe('text/plain;boundary="x";charset="latin1"');
    expect(compared('text/plain; a="b\\";c"')).toBe('text/plain;a="b\\";c"');
    expect(compared("text/plain; c=1; b=2; a=3; d=4")).toBe('text/plain;a="3";b="2";c="1";d="4"');
  });

  it("may name UTF-8 in either of its spellings, or none", () => {
    for (const type of [null, "a/b", "a/b;charset=UTF-8", "a/b;charset=utf8"]) {
      expect(() => checkCharset(parseContentType(type))).not.toThrow();
    }
    for (const charset of ["utf-16", "utf", "xutf-8"]) {
      expect(() => checkCharset(parseContentType(`a/b;charset=${charset}`))).toThrow(unsupported);
    }
  });
});

describe("pairs", () => {
  it("are sorted by name, by code unit, and keep their order under one name", () => {
    const pairs: Pair[] = [
      ["b", "2"],
      ["a", "3"],
      ["B", "1"],
      ["a", "1"],
      ["é", null],
      ["b", "1"],
    ];
    expect(sortPairs(pairs).map(([name, value]) => `${name}${value}`)).toEqual(["B1", "a3", "a1", "b2", "b1", "énull"]);
    expect(pairs[0]).toEqual(["b", "2"]);
  });

  it("have one frozen canonical form", () => {
    expect(
      hex(
        canonicalPairs([
          ["a", null],
          ["b", ""],
        ]),
      ),
    ).toBe("010100000001610001000000016201" + "00000000");
  });

  it("are limited in number, and may hold NUL only where that is allowed", () => {
    expect(parsePairs("a&b", { maxPairs: 2 })).toHaveLength(2);
    expect(() => parsePairs("a&b&c", { maxPairs: 2 })).toThrow("holds more than 2 pairs");
    expect(() => parsePairs("%00")).toThrow(invalid);
    expect(() => parsePairs("a=%00")).toThrow("U+0000");
    expect(parsePairs("%00", { allowNul: true })).toEqual([["\0", null]]);
    expect(() => parsePairs("\udc00=1")).toThrow("lone surrogate");
  });

  it("nest as deeply as is allowed", () => {
    expect(formValue([["a[b][c]", "1"]], { maxDepth: 2 })).toEqual({ a: { b: { c: "1" } } });
    expect(() => formValue([["a[b][c]", "1"]], { maxDepth: 1 })).toThrow("nested too deeply");
    const deep = (levels: number) => () => formValue([[`a${"[b]".repeat(levels)}`, "1"]], { maxDepth: 1e6 });
    expect(deep(999)).not.toThrow();
    expect(deep(1_000)).toThrow("nested too deeply");
  });
});

describe("bracketed names", () => {
  it("spell objects and lists, with any leaf at their ends", () => {
    expect(
      nest(
        [
          ["a[0]", 1],
          ["a[1]", null],
        ],
        9,
      ),
    ).toEqual({ a: [1, null] });
    expect(
      nest(
        [
          ["a[0]", 1],
          ["a[01]", 2],
        ],
        9,
      ),
    ).toEqual({ a: { 0: 1, "01": 2 } });
    expect(
      nest(
        [
          ["", 1],
          ["b", undefined],
        ],
        9,
      ),
    ).toEqual({ "": 1, b: undefined });
    expect(
      nest(
        [
          ["a[b]", 1],
          ["a[c]", 2],
          ["a[b]", 3],
        ],
        9,
      ),
    ).toEqual({ a: { b: [1, 3], c: 2 } });
    expect(nest([["a[b][]", 1]], 9)).toEqual({ a: { b: [1] } });
    for (const name of ["a[b[c][d]", "a[b][c[d]", "a[b]c][d]"]) expect(nest([[name, 1]], 9)).toEqual({ [name]: 1 });
    expect(
      nest(
        [
          ["a[]", 1],
          ["a[]", 2],
        ],
        9,
      ),
    ).toEqual({ a: [1, 2] });
  });

  it("are refused where a name means two things", () => {
    for (const names of [["a", "a[b]"], ["a[b]", "a"], ["a[b]", "a[b][c]"], ["a[]", "a"], ["a", "a[]"], ["a[][b]"]]) {
      expect(
        () =>
          nest(
            names.map((name) => [name, 1]),
            9,
          ),
        names.join(),
      ).toThrow(invalid);
    }
    expect(() =>
      nest(
        [
          ["a[b]", 1],
          ["a[]", 1],
        ],
        9,
      ),
    ).toThrow("used both");
    expect(() => nest([["a[][b]", 1]], 9)).toThrow('"[]" before its end');
  });
});

describe("a request's body", () => {
  it("is none where there are no bytes, whatever its type says", () => {
    for (const type of [null, "application/json", "not a type", "text/plain; charset=latin1"]) {
      const body = readRequestBody(type, new Uint8Array());
      expect([body.kind, body.mediaType, hex(body.canonical()), body.value(), body.ordinaryNumbers]).toEqual([
        ...["none", null, "", undefined, false],
      ]);
    }
  });

  it("tells what it is compared as, and whether its numbers are ordinary ones", () => {
    const told = (type: string | null, text: string) => {
      const { kind, mediaType, ordinaryNumbers } = readRequestBody(type, encode(text));
      return [kind, mediaType, ordinaryNumbers];
    };
    expect(told("application/json", '{"a":1}')).toEqual(["json", "application/json", true]);
    expect(told("application/json", '{"a":1e3}')).toEqual(["json", "application/json", false]);
    expect(told("application/x-www-form-urlencoded", "a=1")).toEqual([
      "form",
      "application/x-www-form-urlencoded",
      false,
    ]);
    const multipart = '--XX\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--XX--';
    expect(told("multipart/form-data; boundary=XX", multipart)).toEqual(["multipart", "multipart/form-data", false]);
    expect(told("text/plain; charset=latin1", "a")).toEqual(["raw", 'text/plain;charset="latin1"', false]);
    expect(told(null, "a")).toEqual(["raw", null, false]);
  });

  it("keeps the order of a form, unless names may come in any", () => {
    const canonical = (options: object) =>
      hex(readRequestBody("application/x-www-form-urlencoded", encode("b=1&a=2"), options).canonical());
    const pairs: Pair[] = [
      ["b", "1"],
      ["a", "2"],
    ];
    expect(canonical({})).toBe(hex(canonicalPairs(pairs)));
    expect(canonical({ formOrder: "significant" })).toBe(hex(canonicalPairs(pairs)));
    expect(canonical({ formOrder: "by_name" })).toBe(hex(canonicalPairs(pairs.toReversed())));
  });

  it("has a byte order mark as text where it is a form's: no reader of forms skips one", () => {
    const body = readRequestBody("application/x-www-form-urlencoded", encode("\ufeffa=1"));
    expect(body.value()).toEqual({ "\ufeffa": "1" });
  });

  it("that a framework parsed is compared as it was then", () => {
    const value = { a: [1], b: 2 };
    const body = parsedRequestBody("application/json; charset=utf-8", value);
    value.a.push(3);
    expect(Buffer.from(body.canonical() as Uint8Array).toString()).toBe('{"a":[1],"b":2}');
    expect([body.kind, body.mediaType, body.ordinaryNumbers]).toEqual(["json", "application/json", false]);
    expect(body.value()).toBe(value);
    const unsafe = { a: 2 ** 53 };
    for (const options of [{}, { allowUnsafeNumbers: false }]) {
      expect(() => parsedRequestBody("application/json", unsafe, options)).toThrow(invalid);
    }
    expect(parsedRequestBody(null, unsafe, { allowUnsafeNumbers: true }).kind).toBe("raw");
    expect(() => parsedRequestBody("not a type", {})).toThrow(unsupported);
    expect(() => parsedRequestBody(null, { f() {} })).toThrow(
      expect.objectContaining({ code: "oncekey_value_unsupported" }),
    );
  });
});
