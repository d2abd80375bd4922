import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { outcomeOf } from "../../src/cli/outcome-file.ts";
import type { FinalState } from "../../src/core/described-outcome.ts";
import { atEnd, createDatabase, passTime, query } from "../support/postgres.ts";
import { cli } from "./support/cli.ts";
import { entriesOn } from "./support/cli-entries.ts";
import { ringFile } from "./support/stored-content.ts";

const dir = mkdtempSync(join(tmpdir(), "oncekey-outcomes-"));
atEnd(async () => rmSync(dir, { recursive: true, force: true }));

let files = 0;

/** A file with that text; what is no text is written as JSON. */
function file(content: unknown): string {
  const path = join(dir, `outcome-${++files}.json`);
  writeFileSync(path, typeof content === "string" || Buffer.isBuffer(content) ? content : JSON.stringify(content));
  return path;
}

const ANSWER = '{"status":201,"headers":{"Location":"/v1/payouts/7"},"body":{"b":1,"amount":12345678901234567890.10}}';
const REFUSAL = { status: 422, body: { code: "payout_refused" } };

/** The one entry's id and state. */
async function theEntry(url: string): Promise<{ id: string; state: string }> {
  const [row] = await query(url, "SELECT encode(id, 'hex') AS id, state FROM oncekey.entry");
  return { id: String(row?.id), state: String(row?.state) };
}

/** Runs `resolve` with --json. */
async function resolve(url: string, ...args: string[]) {
  const { code, stdout, stderr } = await cli(["resolve", ...args, "--json"], { url });
  expect(stderr).toBe("");
  return { code, data: JSON.parse(stdout) };
}

describe("oncekey resolve", () => {
  it("refuses while what was sent may still land, unless forced; then retries get the operator's answer", async () => {
    const { url } = await createDatabase();
    const entries = await entriesOn(url);
    await entries.payout("k1");
    const { id } = await theEntry(url);
    const path = file(ANSWER);
    const refused = await cli(["resolve", id.slice(0, 8), "--succeeded", path], { url });
    expect(refused).toMatchObject({ code: 4, stderr: "" });
    expect(refused.stdout).toMatch(
      /\nopen calls, which may have been made\n {2}transfer, generation 1 {2}sent .* ago, may/,
    );
    expect(refused.stdout).toMatch(/nobody declared for how long.*--force\.\nNothing was changed\.\n$/);
    expect(await theEntry(url)).toEqual({ id, state: "needs_recovery" });

    const forced = await resolve(url, id, "--succeeded", path, "--force", "--by=ada", "--note=ticket 4711");
    expect(forced).toMatchObject({
      code: 0,
      data: { id, resolved: true, verdict: "succeeded", from: "needs_recovery", by: "ada" },
    });
    expect(forced.data.openIntents).toMatchObject([
      { call: "transfer", generation: 1, form: "never", settlesInMs: null },
    ]);
    const retry = await entries.payout("k1");
    if (retry.kind !== "replayed") throw new Error(retry.kind);
    expect(retry.outcome.status).toBe(201);
    expect(Buffer.from(retry.outcome.body).toString()).toBe('{"b":1,"amount":12345678901234567890.1}');
    expect(retry.outcome.headers).toContainEqual(["location", "/v1/payouts/7"]);

    const { stdout } = await cli(["inspect", "k1"], { url });
    expect(stdout).toMatch(
      /\nresolved +\S+Z {2}succeeded by ada, was needs_recovery, forced, open then: transfer 1, ticket 4711\n/,
    );
  });

  it("sends whoever is too early away until the entry is given up, where its calls have a time and it has none", async () => {
    const { url } = await createDatabase();
    await (await entriesOn(url)).settlingPayout("k1");
    // As its owner's death leaves it, before any sweeper has looked.
    await query(
      url,
      "UPDATE oncekey.entry SET state = 'in_progress', lease_until = now() - interval '1 s', not_before = NULL, settles_at = NULL",
    );
    const { id } = await theEntry(url);
    const { code, stdout } = await cli(["resolve", id, "--failed", file(REFUSAL), "--attempt=1"], { url });
    expect(code).toBe(4);
    expect(stdout).toMatch(/an attempt of the entry itself as well: come back when it is needs_recovery/);
    expect(stdout).not.toContain("nobody declared");
  });

  it("refuses what was seen of an older attempt, and says at which one the entry is", async () => {
    const { url } = await createDatabase();
    await (await entriesOn(url)).settlingPayout("k1");
    await passTime(url, 120_000);
    await query(url, "UPDATE oncekey.entry SET attempt = attempt + 1");
    const { id } = await theEntry(url);
    const late = ["--failed", file(REFUSAL), "--attempt=1"];
    expect(await resolve(url, id, ...late, "--force")).toMatchObject({ code: 4, data: { why: "changed", attempt: 2 } });
    const { stdout } = await cli(["resolve", id, ...late], { url });
    expect(stdout).toMatch(/It was attempted again since you looked: it is at attempt 2 now.*give --attempt 2/);
    expect(await resolve(url, id, "--failed", file(REFUSAL), "--attempt=2")).toMatchObject({ code: 0 });
  });

  it("seals the outcome under the newest key where keys are given", async () => {
    const { url } = await createDatabase();
    const entries = await entriesOn(url);
    await entries.payout("k1");
    const { id } = await theEntry(url);
    const ring = await ringFile(2, 1);
    const sealed = await resolve(url, id, "--succeeded", file(ANSWER), "--force", "--keys-file", ring);
    expect(sealed).toMatchObject({ code: 0, data: { resolved: true } });
    expect(await query(url, "SELECT encode(substr(outcome, 1, 2), 'hex') AS head FROM oncekey.entry")).toEqual([
      { head: "8102" },
    ]);
    const { stdout } = await cli(["inspect", "k1", "--json", "--keys-file", ring], { url });
    expect(JSON.parse(stdout).entries[0].outcome).toMatchObject({
      kind: "stored",
      keyId: 2,
      headerNames: ["content-type", "location"],
    });
  });

  it("accepts a decision once nothing can land any more, and notes the account that made it", async () => {
    const { url } = await createDatabase();
    const entries = await entriesOn(url);
    await entries.settlingPayout("k1");
    const { id } = await theEntry(url);
    const path = file(REFUSAL);
    const early = await resolve(url, id, "--failed", path, "--attempt=1");
    expect(early).toMatchObject({ code: 4, data: { resolved: false, why: "unsettled" } });
    expect(early.data.settlesInMs).toBeGreaterThan(0);
    await passTime(url, 120_000);
    const text = await cli(["resolve", id, "--failed", path, "--retention=7d", "--attempt=1"], { url });
    expect(text).toMatchObject({ code: 0, stdout: expect.stringContaining("stored 422, for 7 d.\n") });
    expect(await query(url, "SELECT resolved_by, verdict, forced, status FROM oncekey.resolution")).toEqual([
      { resolved_by: userInfo().username, verdict: "failed", forced: false, status: 422 },
    ]);
    expect(await entries.settlingPayout("k1")).toMatchObject({ kind: "replayed", outcome: { status: 422 } });
  });

  it("gives an entry back", async () => {
    const { url } = await createDatabase();
    await (await entriesOn(url)).settlingPayout("k1");
    await passTime(url, 120_000);
    const { id } = await theEntry(url);
    const { code, stdout } = await cli(["resolve", id, "--release"], { url });
    expect({ code, stdout }).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("goes on from its recovery point"),
    });
    expect(await theEntry(url)).toEqual({ id, state: "released" });
  });

  it("leaves finished and running entries alone, whatever is insisted on", async () => {
    const { url } = await createDatabase();
    const entries = await entriesOn(url, { leaseMs: 600_000 });
    await entries.invoice("k1");
    const { id } = await theEntry(url);
    const finished = await resolve(url, id, "--release", "--force");
    expect(finished).toMatchObject({ code: 4, data: { why: "finished", state: "succeeded" } });
    expect((await cli(["resolve", id, "--release"], { url })).stdout).toContain(
      "It has an outcome already (succeeded)",
    );
    await query(url, "DELETE FROM oncekey.entry");
    const goOn = await entries.standing("k2");
    const running = await theEntry(url);
    const busy = await resolve(url, running.id, "--failed", file(REFUSAL), "--attempt=1", "--force");
    expect(busy).toMatchObject({ code: 4, data: { why: "running", claimableInMs: expect.any(Number) } });
    const text = await cli(["resolve", running.id, "--release", "--force"], { url });
    expect(text.stdout).toMatch(
      /Its owner may still be at work, and --force does not change that\. Come back in \d+ min/,
    );
    expect(await goOn()).toMatchObject({ kind: "completed" });
    expect(await query(url, "SELECT FROM oncekey.resolution")).toEqual([]);
  });

  it("ends with 3 where no entry has the id, and with 2 where it is not one id", async () => {
    const { url } = await createDatabase();
    await (await entriesOn(url)).invoice("k1");
    const none = await cli(["resolve", "0123456789", "--release"], { url });
    expect(none).toMatchObject({ code: 3, stdout: expect.stringMatching(/^No entry has this id/) });
    await query(
      url,
      `INSERT INTO oncekey.entry
       SELECT (jsonb_populate_record(e, jsonb_build_object(
         'id', '\\x' || left(encode(id, 'hex'), 62) || '0' || n, 'tenant', 't' || n))).*
       FROM oncekey.entry AS e, generate_series(1, 2) AS n`,
    );
    const { id } = await theEntry(url);
    const several = await cli(["resolve", id.slice(0, 8), "--release"], { url });
    expect(several).toMatchObject({ code: 2, stdout: "" });
    expect(several.stderr).toMatch(/^oncekey: More than one entry has an id that begins so\. Nothing was changed;/);
  });

  it.each<[string, string[], RegExp]>([
    ["no id", [], /^The id is missing/],
    ["an id that is too short", ["0123456", "--release"], /^The id must be 64 hex digits, or at least the first 8/],
    ["an id that is no hex", ["01234567g", "--release"], /^The id must be/],
    ["an id that is too long", ["0".repeat(65), "--release"], /^The id must be/],
    ["no verdict", ["01234567"], /^Exactly one of --succeeded FILE, --failed FILE and --release/],
    ["two verdicts", ["01234567", "--release", "--failed=x"], /^Exactly one of/],
    ["a retention without an outcome", ["01234567", "--release", "--retention=1d"], /^--retention and --tombstone/],
    ["a retention that is none", ["01234567", `--failed=${file(REFUSAL)}`, "--retention=1y"], /^--retention must be/],
    ["a file that is not there", ["01234567", `--failed=${dir}/none`], /^The outcome file cannot be read \(ENOENT\)/],
    ["a directory", ["01234567", `--failed=${dir}`], /^The outcome file cannot be read \(EISDIR\)/],
    ["a failure without the attempt", ["01234567", `--failed=${file(REFUSAL)}`], /^--failed needs --attempt N/],
    ["an attempt that is none", ["01234567", "--release", "--attempt=0"], /^--attempt must be a whole number from 1/],
    ["nobody", ["01234567", "--release", "--by= "], /^--by must name somebody/],
    ["a note without end", ["01234567", "--release", `--note=${"x".repeat(2_001)}`], /^--note must be text of at most/],
  ])("refuses %s with 2, before it connects", async (_, args, expected) => {
    const { code, stdout, stderr } = await cli(["resolve", ...args], { url: "postgres://127.0.0.1:1/none" });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr.replace(/^oncekey: /, "")).toMatch(expected);
  });
});

describe("an outcome file", () => {
  const read = (content: unknown, state: FinalState = "succeeded") => outcomeOf(file(content), state);

  it("gives status, headers and the exact bytes", async () => {
    const text = '{ "status": 2.00e2, "body": [1.50, -0, 9007199254740993, 1e3, "ä\\u0000", null, {"b":1,"a":2}] }';
    const json = await read(text);
    expect(json).toMatchObject({ status: 200, headers: [["content-type", "application/json"]] });
    expect(Buffer.from(json.body).toString()).toBe('[1.5,0,9007199254740993,1000,"ä\\u0000",null,{"b":1,"a":2}]');
    const headers = { "Content-Type": "text/csv", Link: ["<a>", "<b>"] };
    const bytes = await read({ status: 200, headers, bodyBase64: "/wA=" });
    expect([...bytes.body]).toEqual([0xff, 0]);
    expect(bytes.headers).toEqual([
      ["content-type", "text/csv"],
      ["link", "<a>"],
      ["link", "<b>"],
    ]);
    expect(await read({ status: 204 })).toEqual({ status: 204, headers: [], body: new Uint8Array() });
    expect(await read({ status: 500, bodyBase64: "" }, "failed")).toMatchObject({ status: 500, headers: [] });
  });

  it.each<[string, unknown, RegExp, FinalState?]>([
    ["is empty", "", /is not JSON/],
    ["is no JSON", "status: 200", /is not JSON/],
    ["is no UTF-8", Buffer.from([0x22, 0xff, 0x22]), /is not JSON/],
    ["repeats a member", '{"status":200,"status":201}', /is not JSON/],
    ["is a list", [], /is not an object/],
    [
      "has an unknown member",
      { status: 200, Body: 1 },
      /has a member that is none of status, headers, body, bodyBase64/,
    ],
    ["has no status", { body: 1 }, /needs a "status" from 200 to 399, where it succeeded/],
    ["has a status as text", { status: "200" }, /needs a "status"/],
    ["has a broken status", { status: 200.5 }, /needs a "status"/],
    ["succeeds with a refusal", { status: 404 }, /needs a "status" from 200 to 399/],
    ["fails with a success", { status: 200 }, /needs a "status" from 400 to 599, where it failed/, "failed"],
    ["has two bodies", { status: 200, body: 1, bodyBase64: "" }, /has both/],
    ["has no base64", { status: 200, bodyBase64: "a-_b" }, /is not base64/],
    ["has base64 without its padding", { status: 200, bodyBase64: "/wA" }, /is not base64/],
    ["has a number for base64", { status: 200, bodyBase64: 12 }, /is not base64/],
    ["has a body that cannot be sent", { status: 204, body: {} }, /has a body, which an answer of 204 cannot have/],
    ["has headers as a list", { status: 200, headers: [] }, /"headers" that are not an object/],
    ["has a header that breaks the line", { status: 200, headers: { Link: "a\r\nb: c" } }, /HTTP cannot carry/],
    ["has a header name with a space", { status: 200, headers: { "a b": "c" } }, /HTTP cannot carry/],
    ["has a header that is a number", { status: 200, headers: { link: 1 } }, /HTTP cannot carry/],
    [
      "has a cookie",
      { status: 200, headers: { "Set-Cookie": "s=hunter2" } },
      /header set-cookie, which is never replayed/,
    ],
  ])("that %s is refused, without a word of what stands in it", async (_, content, expected, state) => {
    const failure = await read(content, state).catch((error: unknown) => error);
    expect(failure).toMatchObject({ name: "UsageError", message: expect.stringMatching(expected) });
    expect(String(failure)).toMatch(/^UsageError: The outcome file .*\. Nothing was changed\.$/);
    expect(String(failure)).not.toContain("hunter2");
  });
});
