import { describe, expect, it } from "vitest";
import { createDatabase, passTime, query } from "../support/postgres.ts";
import { cli } from "./support/cli.ts";
import { CONTENT, entriesOn } from "./support/cli-entries.ts";

/** A database with three messages of the topic invoice.created: the first two dead, the third pending. */
async function letters(): Promise<{ url: string; ids: string[] }> {
  const { url } = await createDatabase();
  const entries = await entriesOn(url);
  for (const key of ["k1", "k2", "k3"]) await entries.invoice(key);
  const rows = await query(url, "SELECT id FROM oncekey.outbox ORDER BY seq");
  const ids = rows.map(({ id }) => String(id));
  await query(
    url,
    `UPDATE oncekey.outbox SET state = 'dead', attempts = 20, reason = E'refused with 410\\u001b[2J'
     WHERE seq IN (SELECT seq FROM oncekey.outbox ORDER BY seq LIMIT 2)`,
  );
  return { url, ids };
}

const statesOf = async (url: string) =>
  (await query(url, "SELECT state FROM oncekey.outbox ORDER BY seq")).map(({ state }) => state);

describe("oncekey outbox list", () => {
  it("shows messages in their order, narrowed as asked, and never what they tell", async () => {
    const { url, ids } = await letters();
    const listed = async (...filter: string[]) => {
      const { code, stdout } = await cli(["outbox", "list", ...filter, "--json"], { url });
      expect(code).toBe(0);
      expect(CONTENT.filter((word) => stdout.includes(word))).toEqual([]);
      return JSON.parse(stdout);
    };
    const all = await listed();
    expect(all).toMatchObject({
      truncated: false,
      messages: [{ attempts: 20, tenant: "acme", state: "dead" }, {}, {}],
    });
    expect(all.messages.map(({ id }: { id: string }) => id)).toEqual(ids);
    expect((await listed("--state=dead")).messages).toHaveLength(2);
    expect((await listed("--state=dead", "--topic=invoice.*", "--limit=1")).truncated).toBe(true);
    expect((await listed("--topic=invoice")).messages).toEqual([]);
    expect((await listed("--tenant=globex")).messages).toEqual([]);
    const { stdout } = await cli(["outbox", "list"], { url });
    expect(stdout).toMatch(
      /^3 messages, oldest first\n\n\S{43} {2}dead, invoice\.created, tenant acme, sent .* ago, 20 att/,
    );
    expect(stdout).toContain("refused with 410\\u{1b}[2J\n");
    expect(stdout).not.toContain("message-content");
  });
});

describe("oncekey outbox retry and discard", () => {
  it("makes dead letters due again, by id or all of a topic", async () => {
    const { url, ids } = await letters();
    const one = await cli(["outbox", "retry", "--", ids[0] ?? ""], { url });
    expect(one).toMatchObject({ code: 0, stdout: "1 message was made due at once.\n", stderr: "" });
    expect(await statesOf(url)).toEqual(["pending", "dead", "pending"]);
    const rest = await cli(["outbox", "retry", "--topic", "invoice.*", "--dead", "--json"], { url });
    expect(JSON.parse(rest.stdout)).toEqual({ changed: 1 });
    expect(await query(url, "SELECT DISTINCT state, attempts FROM oncekey.outbox")).toEqual([
      { state: "pending", attempts: 0 },
    ]);
  });

  it("discards dead letters, and messages that nobody is to get", async () => {
    const { url, ids } = await letters();
    const dead = await cli(["outbox", "discard", "--topic=invoice.created", "--dead"], { url });
    expect(dead).toMatchObject({ code: 0, stdout: "2 messages were discarded.\n" });
    expect(await statesOf(url)).toEqual(["pending"]);
    expect(await cli(["outbox", "discard", "--", ids[2] ?? ""], { url })).toMatchObject({ code: 0 });
    const none = await cli(["outbox", "discard", "--", ...ids], { url });
    expect(none).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/^No message matched .* nothing was changed\.\n$/),
    });
  });

  it.each<[string, string[], RegExp]>([
    ["no action", [], /^The list\|retry\|discard is missing/],
    ["an unknown action", ["purge"], /^There is no action "purge"; write list, retry or discard\./],
    ["a state that does not exist", ["list", "--state=gone"], /^--state must be pending, delivered, dead\./],
    ["a limit of nothing", ["list", "--limit=0"], /^--limit must be a whole number from 1 to 10000/],
    ["ids to list", ["list", "x"], /^list takes no ids/],
    ["--dead to list", ["list", "--dead"], /^The option "--dead" does not belong to list/],
    ["a retry of nothing", ["retry"], /^Give the ids of messages, or --topic TOPIC together with --dead\./],
    ["a topic without --dead", ["discard", "--topic=a"], /^Give the ids/],
    ["--dead without a topic", ["discard", "--dead"], /^Give the ids/],
    ["ids and a topic", ["retry", "x", "--topic=a", "--dead"], /^Give the ids/],
    ["a tenant to discard", ["discard", "x", "--tenant=a"], /^The option "--tenant" does not belong to retry and/],
  ])("refuses %s with 2, before it connects", async (_, args, expected) => {
    const { code, stdout, stderr } = await cli(["outbox", ...args], { url: "postgres://127.0.0.1:1/none" });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr.replace(/^oncekey: /, "")).toMatch(expected);
  });
});

describe("oncekey status", () => {
  it("shows what needs recovery, what no running worker knows, and what the outbox holds", async () => {
    const { url } = await letters();
    const entries = await entriesOn(url, { leaseMs: 600_000 });
    await entries.payout("k4");
    const goOn = await entries.standing("k5");
    await passTime(url, 3_600_000);
    const { stdout } = await cli(["status", "--json"], { url });
    const { recovery, orphaned, messages } = JSON.parse(stdout);
    const [needy] = await query(
      url,
      "SELECT encode(id, 'hex') AS id FROM oncekey.entry WHERE state = 'needs_recovery'",
    );
    expect(recovery).toMatchObject([{ operation: "payouts.create", count: 1, ids: [needy?.id], sweepInMs: null }]);
    expect(orphaned).toMatchObject([
      { operation: "standing.create", runKind: "phases", operationVersion: 1, count: 1, oldestMs: expect.any(Number) },
    ]);
    expect(messages).toEqual(
      expect.arrayContaining([
        { topic: "invoice.created", state: "dead", count: 2, oldestMs: expect.any(Number) },
        { topic: "invoice.created", state: "pending", count: 1, oldestMs: expect.any(Number) },
      ]),
    );
    const text = (await cli(["status"], { url })).stdout;
    expect(text).toMatch(
      /\nneeds recovery\n {2}payouts\.create {2}\S.*\n +1 entry, oldest 1 h.*, waits for a retry or a person .*\n +[0-9a-f]{64}\n/,
    );
    expect(text).toMatch(
      /\ndue, but no running worker knows them\n {2}standing\.create {2}phases, version 1: 1 entry, /,
    );
    expect(text).toMatch(/\nmessages\n(?: {2}.*\n)* {2}invoice\.created {2}2 dead, oldest/);
    await goOn().catch(() => {});
  });
});
