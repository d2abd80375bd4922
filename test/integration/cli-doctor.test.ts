import { describe, expect, it } from "vitest";
import { createDatabase, query } from "../support/postgres.ts";
import { cli, cliProject } from "./support/cli.ts";
import { CONTENT, entriesOn } from "./support/cli-entries.ts";
import { durableServer } from "./support/doctor.ts";

/** What the tests' shared server has of itself: it does without the disk. */
const UNSAFE = ["fsync is off.", "full_page_writes is off."];

interface DoctorJson {
  readonly schema: string;
  readonly worst: string;
  readonly checks: readonly {
    readonly name: string;
    readonly result: string;
    readonly seen: string;
    readonly findings: readonly Record<"severity" | "what" | "why" | "fix", string>[];
  }[];
}

const parsed = (stdout: string): DoctorJson => JSON.parse(stdout);

const found = ({ checks }: DoctorJson) => checks.flatMap(({ findings }) => findings.map(({ what }) => what));

describe("oncekey doctor", () => {
  it("ends with 1 where it finds an error, and reports as text and as JSON", async () => {
    const { url } = await createDatabase();
    const text = await cli(["doctor"], { url });
    expect(text).toMatchObject({ code: 1, stderr: "" });
    expect(text.stdout).toMatch(/^schema +ok +oncekey, migration \d+; PostgreSQL \d+/);
    expect(text.stdout).toMatch(/\ndurability +error +fsync off, /);
    expect(text.stdout).toMatch(
      /\nerror, durability\n {2}found {2}fsync is off\.\n {2}why +\S.*\n {2}fix +ALTER SYSTEM SET fsync = on;/,
    );
    expect(text.stdout).toMatch(/\n1 error, 1 warning, 0 notes; 2 checks could not look\. Nothing was changed\.\n$/);
    expect(text.stdout).not.toContain("\u001b");
    const json = await cli(["doctor", "--json"], { url });
    expect(json).toMatchObject({ code: 1, stderr: "" });
    expect(parsed(json.stdout)).toMatchObject({ schema: "oncekey", worst: "error" });
    expect(found(parsed(json.stdout))).toEqual(UNSAFE);
  });

  it("ends with 0 where it finds nothing, or a warning; with --strict a warning counts", async () => {
    const server = await durableServer();
    try {
      const { url } = await createDatabase({ server });
      expect(await cli(["doctor"], { url })).toMatchObject({
        code: 0,
        stderr: "",
        stdout: expect.stringMatching(/\n0 errors, 0 warnings, 0 notes; /),
      });
      const warned = ["doctor", "--pool", "1"];
      expect(await cli(warned, { url })).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/\nwarning, connections\n {2}found {2}The pool has one connection\.\n/),
      });
      expect(await cli([...warned, "--strict"], { url })).toMatchObject({ code: 1, stderr: "" });
      expect(await cli(["doctor", "--strict"], { url })).toMatchObject({ code: 0 });
    } finally {
      await server.close();
    }
  });

  it("takes what only the operator knows, and refuses what cannot be", async () => {
    const { url } = await createDatabase();
    await (await entriesOn(url)).charge("k1");
    const given = ["--client-window", "72h", "--pool", "10", "--processes", "99", "--concurrency", "20"];
    const { stdout } = await cli(["doctor", ...given, "--json"], { url });
    expect(found(parsed(stdout))).toEqual([
      ...UNSAFE,
      expect.stringMatching(/^99 processes with 10 connections each/),
      expect.stringMatching(/^Of 20 requests at once, 9 have a transaction/),
      expect.stringMatching(/^charges\.create keeps an outcome for 1 d, clients retry for 3 d/),
    ]);
    expect(await cli(["doctor", "--pool", "none"], { url })).toMatchObject({ code: 2, stdout: "" });
  });

  it("shows nothing of what is stored, changes nothing, and tells what the role of operators may not see", async () => {
    const { url } = await createDatabase();
    const entries = await entriesOn(url);
    await entries.charge("the-key-itself");
    await entries.payout("another-key");
    const role = `role_${url.slice(-16)}`;
    await query(url, `CREATE ROLE "${role}" LOGIN`);
    try {
      await cli(["migrate", "--grants", `console=${role}`], { url });
      const before = await query(url, "SELECT * FROM oncekey.entry ORDER BY id");
      const asRole = await cli(["doctor", "--json"], { url: url.replace("//postgres@", `//${role}@`) });
      expect(asRole).toMatchObject({ code: 1, stderr: "" });
      const skipped = parsed(asRole.stdout).checks.filter(({ result }) => result === "skipped");
      expect(skipped.map(({ name }) => name)).toEqual(["key per retry", "key of payload", "key reuse", "routes"]);
      expect(skipped[0]?.seen).toMatch(/^this database role may not read what it looks at/);
      const asOwner = await cli(["doctor"], { url });
      const all = asRole.stdout + asOwner.stdout;
      expect([...CONTENT, "the-key-itself", "another-key", "acme"].filter((word) => all.includes(word))).toEqual([]);
      expect(await query(url, "SELECT * FROM oncekey.entry ORDER BY id")).toEqual(before);
    } finally {
      await query(url, `DROP OWNED BY "${role}"`, `DROP ROLE "${role}"`);
    }
  });

  it("works with Postgres.js as with pg, which alone shows whether a pooler stands between", async () => {
    const { url } = await createDatabase();
    await (await entriesOn(url)).charge("k1");
    const resultsIn = async (project: string) => {
      const { checks } = parsed((await cli(["doctor", "--json"], { url, project })).stdout);
      return Object.fromEntries(checks.map(({ name, result }) => [name, result]));
    };
    const withPg = await resultsIn(await cliProject(["pg"]));
    expect(withPg).toMatchObject({ pooler: "ok", retention: "ok" });
    expect(await resultsIn(await cliProject(["postgres"]))).toEqual({ ...withPg, pooler: "skipped" });
  });

  it("fails as other commands do where there is no database", async () => {
    const failed = await cli(["doctor", "--json"], { url: "postgres://postgres@127.0.0.1:1/none" });
    expect(failed).toMatchObject({ code: 1, stdout: "" });
    expect(JSON.parse(failed.stderr)).toMatchObject({ error: { code: "idempotency_store_unavailable" } });
  });
});
