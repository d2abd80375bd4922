import { gzipSync } from "node:zlib";
import { beforeAll, describe, expect, it } from "vitest";
import { post, type RawAnswer, type Sent, send } from "./support/client.ts";
import { type Lab, openLab, type Program } from "./support/crash-lab.ts";
import { postRaw } from "./support/crash-raw.ts";
import { chargeOf, invoiceOf, submit } from "./support/crash-requests.ts";

// What is refused before any claim (DESIGN §5, the rows up to 415): status, code, problem body, and proof in the
// database that nothing was stored.

let lab: Lab;
let api: Program;
let refundBody: object;

beforeAll(async () => {
  lab = await openLab();
  api = await lab.api();
  const charge = await submit(api, chargeOf("charge"));
  refundBody = { charge_id: charge.json().id, amount_minor: 1 };
});

const OPERATIONS = [
  { path: "/v1/invoices", good: () => invoiceOf("").body, text: "customer_id" },
  { path: "/v1/charges", good: () => chargeOf("").body, text: "source" },
  { path: "/v1/refunds", good: () => refundBody, text: "charge_id" },
];

const TABLES = ["oncekey.entry", "oncekey.phase", "oncekey.intent", "oncekey.outbox", "invoices", "charges", "refunds"];

/** Rows of every table, and the transactions' marks on Oncekey's: an update would show too. */
async function stored(): Promise<unknown> {
  const counts = TABLES.map(
    (table) => `SELECT '${table}' AS name, count(*), md5(string_agg(t::text, '')) FROM ${table} t`,
  );
  return lab.sql(counts.join(" UNION ALL "));
}

async function leavingNothing<T>(run: () => Promise<T>): Promise<T> {
  const before = await stored();
  const result = await run();
  expect(await stored()).toEqual(before);
  return result;
}

const TITLES = { new_key: /key/, same_key: /request/ };

function expectProblem(answer: RawAnswer, status: number, code: string, retry: "new_key" | "same_key"): void {
  expect(`${answer.status} ${answer.text}`).toMatch(new RegExp(`^${status} .*"${code}"`));
  expect(answer.headers["content-type"]).toMatch(/^application\/problem\+json/);
  expect(answer.headers["idempotent-replayed"]).toBeUndefined();
  expect(answer.headers["retry-after"]).toBeUndefined();
  expect(answer.json()).toMatchObject({
    status,
    code,
    retry,
    state: "none",
    title: expect.stringMatching(TITLES[retry]),
  });
}

const MALFORMED_KEYS: readonly (readonly [string, string])[] = [
  ["empty", ""],
  ["of spaces", "   "],
  ["an empty quoted string", '""'],
  ["of 256 characters", "k".repeat(256)],
  ["of 256 quoted characters", `"${"k".repeat(256)}"`],
  ["with parameters", '"a";x=1'],
  ["with a comma", "a,b"],
  ["with a quoted comma", '"a,b"'],
  ["with an open quote", '"a'],
  ["with a space", "a b"],
];

describe.each(OPERATIONS)("the key of POST $path", ({ path, good }) => {
  it("is required", async () => {
    const answer = await leavingNothing(() => send("POST", `${api.url}${path}`, { body: good() }));
    expectProblem(answer, 400, "idempotency_key_missing", "new_key");
  });

  it.each(MALFORMED_KEYS)("is refused when %s", async (_what, key) => {
    const answer = await leavingNothing(() => post(`${api.url}${path}`, key, good()));
    expectProblem(answer, 400, "idempotency_key_invalid", "new_key");
  });

  it("is refused in two lines, equal ones too", async () => {
    for (const keys of [
      ["a", "a"],
      ["a", "b"],
    ]) {
      const sent = { headers: { "idempotency-key": keys }, body: good() };
      const answer = await leavingNothing(() => send("POST", `${api.url}${path}`, sent));
      expectProblem(answer, 400, "idempotency_key_invalid", "new_key");
    }
  });

  it("is refused when it holds bytes outside ASCII", async () => {
    const answer = await leavingNothing(() => postRaw(`${api.url}${path}`, ["idempotency-key: pay-💸"], good()));
    expect(answer.status).toBe(400);
    expect(answer.contentType).toMatch(/^application\/problem\+json/);
    expect(JSON.parse(answer.text)).toMatchObject({ code: "idempotency_key_invalid", retry: "new_key", state: "none" });
  });

  it("is refused when it holds a NUL, by whichever layer sees it first", async () => {
    const lines = [Buffer.from("idempotency-key: a\0b")];
    const answer = await leavingNothing(() => postRaw(`${api.url}${path}`, lines, good()));
    expect(answer.status).toBe(400);
  });

  it("may have 255 characters, and is the same one with quotes", async () => {
    const key = `${path.length}${"k".repeat(253)}`;
    expect(key).toHaveLength(255);
    const body = good();
    const first = await post(`${api.url}${path}`, key, body);
    expect(first.status).toBe(201);
    const second = await post(`${api.url}${path}`, `"${key}"`, body);
    expect(second.headers["idempotent-replayed"]).toBe("true");
    expect(second.bytes.equals(first.bytes)).toBe(true);
  });
});

const MIB = 1024 * 1024;
const type = (contentType: string, more: Readonly<Record<string, string>> = {}): Sent => ({
  headers: { "content-type": contentType, ...more },
});

interface BadBody {
  readonly what: string;
  readonly status: number;
  /** The body, given a good one as text and the name of a text member in it. */
  body(good: string, text: string): string | Buffer;
  readonly sent?: Sent;
}

/** The good body with one more member. */
const plus = (member: string) => (good: string) => `${good.slice(0, -1)},${member}}`;
/** The good body, its text member replaced by this raw JSON. */
const withText = (raw: string) => (good: string, text: string) =>
  good.replace(new RegExp(`"${text}":"[^"]*"`), () => `"${text}":${raw}`);

const BAD_BODIES: readonly BadBody[] = [
  { what: "empty", status: 400, body: () => "" },
  { what: "cut off", status: 400, body: (good) => good.slice(0, -1) },
  { what: "followed by more", status: 400, body: (good) => `${good}{}` },
  { what: "JSON, but no object", status: 400, body: (good) => `[${good}]` },
  { what: "with a duplicate member", status: 400, body: plus('"amount_minor":1') },
  { what: "with an unknown member", status: 400, body: plus('"surprise":1') },
  { what: "10,000 levels deep", status: 400, body: plus(`"metadata":${"[".repeat(10_000)}${"]".repeat(10_000)}`) },
  { what: "with an absurd exponent", status: 400, body: plus('"metadata":{"n":1e999999999}') },
  {
    what: "with an absurd amount",
    status: 400,
    body: (good) => good.replace(/"amount_minor":\d+/, '"amount_minor":1e999999999'),
  },
  { what: "with a lone surrogate", status: 400, body: withText('"\\ud800"') },
  { what: "with \\u0000 in a text", status: 400, body: withText('"a\\u0000b"') },
  { what: "with \\u0000 deep inside", status: 400, body: plus('"metadata":{"a":["\\u0000"]}') },
  { what: "with a raw NUL", status: 400, body: withText('"a\0b"') },
  {
    what: "that is not UTF-8",
    status: 400,
    body: (good) => Buffer.concat([Buffer.from(good.slice(0, -2)), Buffer.from([0xff]), Buffer.from(good.slice(-2))]),
  },
  { what: "2 MB over the limit", status: 413, body: (good) => good + " ".repeat(MIB + 2_000_000) },
  {
    what: "that grows 2 MB over the limit when decoded",
    status: 413,
    body: (good) => gzipSync(good + " ".repeat(MIB + 2_000_000)),
    sent: type("application/json", { "content-encoding": "gzip" }),
  },
  {
    what: "that is no gzip, though it says so",
    status: 400,
    body: (good) => good,
    sent: type("application/json", { "content-encoding": "gzip" }),
  },
  {
    what: "of an unknown coding",
    status: 415,
    body: (good) => good,
    sent: type("application/json", { "content-encoding": "zstd-next" }),
  },
  { what: "of an unknown charset", status: 415, body: (good) => good, sent: type("application/json; charset=utf-16") },
  { what: "of type text/plain", status: 415, body: (good) => good, sent: type("text/plain") },
  { what: "of type application/xml", status: 415, body: () => "<a/>", sent: type("application/xml") },
  {
    what: "of type multipart/form-data",
    status: 415,
    body: () => "--x--\r\n",
    sent: type("multipart/form-data; boundary=x"),
  },
  { what: "of a malformed type", status: 415, body: (good) => good, sent: type("json") },
];

const CODES: Readonly<Record<number, string>> = {
  400: "idempotency_request_invalid",
  413: "idempotency_request_too_large",
  415: "idempotency_request_unsupported",
};

describe.each(OPERATIONS)("a body of POST $path", ({ path, good, text }) => {
  // One key for all of them: none may leave a trace that the next one, or the good one, would meet.
  const key = `bad-bodies-of-${path}`;

  for (const { what, status, body, sent } of BAD_BODIES) {
    it(`${what} is refused`, async () => {
      const bytes = body(JSON.stringify(good()), text);
      const answer = await leavingNothing(() => post(`${api.url}${path}`, key, bytes, sent));
      expectProblem(answer, status, CODES[status] ?? "", "same_key");
    });
  }

  it("is welcome under the same key once it is in order", async () => {
    const answer = await post(`${api.url}${path}`, key, good());
    expect(answer.status).toBe(201);
    expect(answer.headers["idempotent-replayed"]).toBeUndefined();
  });
});

describe("the order of the checks", () => {
  const url = () => `${api.url}/v1/invoices`;

  it("is authentication, key, body", async () => {
    const nothing = await leavingNothing(() => send("POST", url(), { token: null, body: "{" }));
    expect(nothing.status).toBe(401);
    const keyless = await leavingNothing(() => send("POST", url(), { body: "{" }));
    expectProblem(keyless, 400, "idempotency_key_missing", "new_key");
  });

  it("lets a known key meet its entry before the input is validated", async () => {
    const invoice = invoiceOf("known");
    expect((await submit(api, invoice)).status).toBe(201);
    const invalid = { ...(invoice.body as object), amount_minor: -1 };
    const answer = await leavingNothing(() => post(url(), "known", invalid));
    expect(answer.status).toBe(422);
    expect(answer.json()).toMatchObject({ code: "idempotency_payload_mismatch", retry: "new_key" });
    const unreadable = await leavingNothing(() => post(url(), "known", "{"));
    expect([400, 422]).toContain(unreadable.status);
  });
});
