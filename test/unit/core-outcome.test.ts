import { describe, expect, it } from "vitest";
import { checkPointer, newPointer } from "../../src/core/body-store.ts";
import {
  bytesOf,
  type HeaderLine,
  headerAllowlist,
  isInMemory,
  isSendable,
  type LongBody,
  letGo,
  storableHeaders,
  takeBytes,
} from "../../src/core/outcome.ts";
import {
  accepted,
  created,
  isResponse,
  json,
  noContent,
  type OperationResponse,
  ok,
  reject,
  respond,
} from "../../src/core/response.ts";

const text = ({ body }: OperationResponse) => new TextDecoder().decode(body);
const JSON_LINE = ["content-type", "application/json"];

describe("an answer that an operation makes", () => {
  it("has status, headers and bytes, whatever they were given as", () => {
    expect(respond(418, "é")).toEqual({
      ...{ kind: "response", status: 418, headers: [] },
      body: Uint8Array.of(0xc3, 0xa9),
    });
    const bytes = Uint8Array.of(1, 2);
    expect(respond(200, bytes, { "X-Cost": "5" })).toMatchObject({ headers: [["x-cost", "5"]], body: bytes });
    expect(respond(200, null).body).toEqual(new Uint8Array());
    expect(respond(200, "", { Link: ["<a>", "<b>"] }).headers).toEqual([
      ["link", "<a>"],
      ["link", "<b>"],
    ]);
  });

  it("has the status of its name, and JSON with its type", () => {
    const made = [json(299, [1n]), ok({ a: 1 }), accepted({ b: 2 }), created("/v1/a", { c: 3 })];
    expect(made.map(({ kind, status }) => [kind, status])).toEqual([
      ["response", 299],
      ["response", 200],
      ["response", 202],
      ["response", 201],
    ]);
    expect(made.map(text)).toEqual(["[1]", '{"a":1}', '{"b":2}', '{"c":3}']);
    for (const one of made.slice(0, 3)) expect(one.headers).toEqual([JSON_LINE]);
    expect(made[3]?.headers).toEqual([JSON_LINE, ["location", "/v1/a"]]);
    expect(noContent()).toEqual({ kind: "response", status: 204, headers: [], body: new Uint8Array() });
  });

  it("has further headers, which take the place of its own", () => {
    const headers = { etag: "1" };
    for (const one of [json(200, 1, headers), ok(1, headers), accepted(1, headers)]) {
      expect(one.headers).toEqual([JSON_LINE, ["etag", "1"]]);
    }
    expect(noContent(headers).headers).toEqual([["etag", "1"]]);
    expect(created("/a", 1, { ...headers, location: "/b" }).headers).toEqual([
      JSON_LINE,
      ["location", "/b"],
      ["etag", "1"],
    ]);
    expect(json(200, 1, { "content-type": "application/x" }).headers).toEqual([["content-type", "application/x"]]);
  });
});

describe("a refusal", () => {
  it("is a problem with its status, and rolls the business rows back unless it says otherwise", () => {
    const refusal = reject(422, { code: "limit_reached" });
    expect([refusal.kind, refusal.keepRows, refusal.response.status]).toEqual(["rejection", false, 422]);
    expect(text(refusal.response)).toBe('{"type":"about:blank","status":422,"code":"limit_reached"}');
    expect(refusal.response.headers).toEqual([["content-type", "application/problem+json"]]);
    expect(reject(402, {}, { keepRows: true }).keepRows).toBe(true);
    expect(reject(402, {}, { keepRows: false }).keepRows).toBe(false);
    expect(reject(402, {}, { headers: { "Retry-After": "5" } }).response.headers).toEqual([
      ["content-type", "application/problem+json"],
      ["retry-after", "5"],
    ]);
    expect(text(reject(402, { type: "https://a/b" }).response)).toBe('{"type":"https://a/b","status":402}');
  });
});

it("an answer is told from what is none", () => {
  for (const made of [ok(1), noContent(), reject(400, {}), created("/a", 1)]) expect(isResponse(made)).toBe(true);
  const body = new Uint8Array();
  const none = [null, undefined, 7, "response", {}, { body }, { kind: "response" }, { kind: "response", body: "text" }];
  for (const one of [...none, { kind: "rejection" }, { kind: "rejection", body }, { kind: "other", body }]) {
    expect(isResponse(one)).toBe(false);
  }
  expect(isResponse({ kind: "rejection", response: { kind: "response" } })).toBe(false);
});

describe("the headers that are stored", () => {
  const DEFAULT = [
    ...["content-type", "content-language", "content-disposition", "content-location", "location", "etag", "link"],
    ...["last-modified", "retry-after"],
  ];
  const NEVER = [
    ...["set-cookie", "set-cookie2", "cookie", "authorization", "proxy-authorization", "www-authenticate"],
    ...["proxy-authenticate", "authentication-info", "proxy-authentication-info", "connection", "keep-alive"],
    ...["proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "content-length", "content-encoding"],
    ...["date", "age", "vary", "idempotent-replayed", "access-control-allow-origin", "access-control-"],
  ];

  it("are those that describe the answer, and those that an operation adds", () => {
    expect([...headerAllowlist()]).toEqual(DEFAULT);
    expect([...headerAllowlist([])]).toEqual(DEFAULT);
    expect([...headerAllowlist(["X-Cost", "etag"])]).toEqual([...DEFAULT, "x-cost"]);
    expect([...headerAllowlist()]).toEqual(DEFAULT);
  });

  it.each(NEVER)("are never %s, whoever asks for it", (name) => {
    for (const spelled of [name, name.toUpperCase()]) {
      expect(() => headerAllowlist(["x-cost", spelled])).toThrow(
        expect.objectContaining({
          code: "oncekey_config_invalid",
          message: expect.stringContaining(`Header ${name} `),
        }),
      );
      expect(storableHeaders([[spelled, "secret"]], new Set([name, spelled]))).toEqual([]);
    }
  });

  it("keep their order and their repetitions, with names in lower case", () => {
    const lines: HeaderLine[] = [
      ["X-Cost", "1"],
      ["Link", "<b>"],
      ["ETag", "1"],
      ["Link", "<a>"],
    ];
    expect(storableHeaders(lines, headerAllowlist())).toEqual([
      ["link", "<b>"],
      ["etag", "1"],
      ["link", "<a>"],
    ]);
    expect(storableHeaders(lines, headerAllowlist(["x-cost"]))).toHaveLength(4);
  });

  it("can be sent: what HTTP cannot carry must not be committed", () => {
    const good: HeaderLine[] = [
      ["x-cost", ""],
      ["X!#$%&'*+-.^_`|~9", "a\tb \x7e\x80\xff"],
    ];
    for (const line of good) expect(isSendable(line)).toBe(true);
    for (const name of ["", "a b", "a:", "é", "a\n", "(a", "a)"]) expect(isSendable([name, "1"]), name).toBe(false);
    for (const value of ["a\r", "\nb", "a\0", "\x7f", "Ā", "a\r\nx: y"]) {
      expect(isSendable(["a", value]), JSON.stringify(value)).toBe(false);
    }
  });
});

describe("the bytes of an outcome", () => {
  function longBody(chunks: readonly Uint8Array[], failure?: Error) {
    let released = 0;
    const body: LongBody = {
      length: 3,
      async *chunks() {
        yield* chunks;
        if (failure !== undefined) throw failure;
      },
      share: () => null,
      release: async () => void released++,
    };
    return { body, released: () => released };
  }

  it("lie in memory, or are gathered from where they lie", async () => {
    const bytes = Uint8Array.of(1, 2, 3);
    const { body, released } = longBody([Uint8Array.of(1), Uint8Array.of(2, 3)]);
    expect([isInMemory(bytes), isInMemory(body)]).toEqual([true, false]);
    expect(await bytesOf(bytes)).toBe(bytes);
    expect(await bytesOf(body)).toEqual(bytes);
    expect(released()).toBe(0);
    expect(await bytesOf(longBody([]).body)).toEqual(new Uint8Array());
  });

  it("are let go of by the last who needs them, also where they cannot be read", async () => {
    const { body, released } = longBody([Uint8Array.of(7)]);
    expect(await takeBytes(body)).toEqual(Uint8Array.of(7));
    expect(released()).toBe(1);
    await letGo(body);
    expect(released()).toBe(2);
    await letGo(new Uint8Array());
    const failure = new Error("cut");
    const broken = longBody([Uint8Array.of(7)], failure);
    await expect(takeBytes(broken.body)).rejects.toBe(failure);
    expect(broken.released()).toBe(1);
  });
});

describe("the pointer to a body", () => {
  const pointer = newPointer(new Uint8Array(32).fill(0xab), new Uint8Array(16).fill(1));

  it("is the entry's id and a random part, in hex", () => {
    expect(pointer).toBe(`${"ab".repeat(32)}/${"01".repeat(16)}`);
    expect(checkPointer(pointer)).toBe(pointer);
  });

  it("is nothing else: it becomes a path", () => {
    const wrong = ["", "..", `../${pointer}`, `${pointer}/..`, `${pointer}0`, `0${pointer}`, pointer.replace("/", "")];
    for (const one of [...wrong, pointer.toUpperCase(), pointer.replace("/", "\\"), pointer.slice(1), `${pointer}\n`]) {
      expect(() => checkPointer(one), one).toThrow(expect.objectContaining({ code: "oncekey_store_broken" }));
    }
  });
});
