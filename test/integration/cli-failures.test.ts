import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { describe, expect, it } from "vitest";
import { alarming } from "../../src/cli/layout.ts";
import { createDatabase, query } from "../support/postgres.ts";
import { type CliOptions, cli, cliFromSources, cliProject, installBroken } from "./support/cli.ts";
import { entriesOn } from "./support/cli-entries.ts";

const version: string = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version;

/** The one line on standard error of a run that must end so, with nothing on standard output. */
async function complaint(expected: 1 | 2, args: readonly string[], options: CliOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await cli(args, options);
  expect({ code, stdout }).toEqual({ code: expected, stdout: "" });
  expect(stderr).toMatch(/^oncekey: [^\n]+\n$/);
  return stderr.slice("oncekey: ".length).trimEnd();
}

/** A loopback port: closed again, or one whose connections are cut at once. */
async function port(kind: "closed" | "cutting"): Promise<{ number: number; server: Server }> {
  const server = createServer((socket) => socket.once("data", () => socket.destroy()));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (kind === "closed") await new Promise((done) => server.close(done));
  if (address === null || typeof address === "string") throw new Error("no port");
  return { number: address.port, server };
}

describe("the oncekey command", () => {
  it("prints its version and its help", async () => {
    const printed = { code: 0, stdout: `${version}\n`, stderr: "" };
    expect(await cli(["--version"])).toEqual(printed);
    expect(await cliFromSources(["--version"])).toEqual(printed);
    const { code, stdout, stderr } = await cli(["--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const part of [
      "migrate",
      "status",
      "inspect",
      "resolve",
      "outbox",
      "purge",
      "worker",
      "rotate",
      "erase",
      "exit codes",
      "example\n",
    ]) {
      expect(stdout).toContain(part);
    }
  });

  it.each(["migrate", "status", "inspect", "resolve", "outbox", "purge", "rotate", "erase"])(
    "has help with an example for %s, without a database",
    async (name) => {
      const { code, stdout, stderr } = await cli([name, "--help"]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toMatch(new RegExp(`\\nusage\\n {2}oncekey ${name} `));
      expect(stdout).toMatch(new RegExp(`\\nexamples?\\n(?: {2}.*\\n)* {2}.*oncekey ${name}`));
      for (const option of ["--database URL", "--schema NAME", "--json", "--help"]) expect(stdout).toContain(option);
      expect(stdout.split("\n").filter((line) => line.length > 120)).toEqual([]);
    },
  );

  it.each<[string, string[], RegExp]>([
    ["no command", [], /^No command was given\. Run "oncekey --help"/],
    ["an unknown command", ["purgee"], /^There is no command "purgee"\. Run "oncekey --help"/],
    ["a command that only objects know", ["constructor"], /^There is no command "constructor"\./],
    ["an option before the command", ["--json", "status"], /^\{?.*The command comes first/s],
    ["an unknown option", ["status", "--jsn"], /^There is no option "--jsn" here\. Run "oncekey status --help"/],
    ["another command's option", ["status", "--batch=2"], /^There is no option "--batch" here/],
    ["a value for a switch", ["status", "--help=yes"], /^The option "--help" takes no value/],
    [
      "an option without its value",
      ["inspect", "k", "--tenant"],
      /^The option "--tenant" needs a value: --tenant=TENANT/,
    ],
    ["an option as a value", ["inspect", "k", "--tenant", "--help"], /^The option "--tenant" needs a value/],
    ["an option twice", ["inspect", "k", "--tenant=a", "--tenant=b"], /^The option "--tenant" was given twice/],
    ["no key", ["inspect"], /^The key is missing or empty/],
    ["an empty key", ["inspect", ""], /^The key is missing or empty/],
    ["two keys", ["inspect", "k1", "k2"], /^Too many operands were given: the command takes only <key>/],
    ["an operand too many", ["purge", "k1"], /^Too many operands were given: the command takes none/],
    ["a batch of nothing", ["purge", "--batch=0"], /^--batch must be a whole number from 1 to 100000/],
    ["a batch that is no number", ["purge", "--batch=1e3"], /^--batch must be a whole number/],
    ["an impossible schema", ["status", "--schema=Once Key"], /^The schema name must be lower case letters/],
    ["an unknown part", ["migrate", "--print", "--grants=app=a"], /^--grants knows no part "app"/],
    ["a part without a role", ["migrate", "--print", "--grants=api="], /^--grants needs a role for the part "api"/],
    ["a part twice", ["migrate", "--print", "--grants=api=a,api=b"], /^--grants names the part "api" twice/],
    ["no database", ["status"], /^No database is named\. Set DATABASE_URL/],
  ])("refuses %s with 2 and says what there is", async (_, args, expected) => {
    const { code, stdout, stderr } = await cli(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr.replace(/^oncekey: /, "")).toMatch(expected);
  });

  it("draws attention in colour on a terminal only, and not against NO_COLOR", () => {
    const { isTTY } = process.stdout;
    const { NO_COLOR } = process.env;
    try {
      delete process.env.NO_COLOR;
      process.stdout.isTTY = true;
      expect(alarming("text")).toBe("\u001b[33mtext\u001b[39m");
      process.env.NO_COLOR = "1";
      expect(alarming("text")).toBe("text");
      delete process.env.NO_COLOR;
      process.stdout.isTTY = false;
      expect(alarming("text")).toBe("text");
    } finally {
      process.stdout.isTTY = isTTY;
      if (NO_COLOR !== undefined) process.env.NO_COLOR = NO_COLOR;
    }
  });
});

describe("a database that is not there", () => {
  it("is told apart: refused, cut, unknown host, unknown database, unknown user", async () => {
    const closed = await port("closed");
    const cutting = await port("cutting");
    const { url } = await createDatabase();
    const at = (number: number) => ({ url: `postgres://u:hidden-pw@127.0.0.1:${number}/d` });
    expect(await complaint(1, ["status"], at(closed.number))).toMatch(/^The connection to the database was refused: /);
    expect(await complaint(1, ["migrate"], at(cutting.number))).toMatch(/^The connection to the database was lost/);
    cutting.server.close();
    const unknownHost = { url: "postgres://u:hidden-pw@host.invalid/d" };
    expect(await complaint(1, ["purge"], unknownHost)).toMatch(/^The database's host name cannot be resolved/);
    const unknownDatabase = { url: url.replace(/\/t_\w+$/, "/no_such_database") };
    expect(await complaint(1, ["status"], unknownDatabase)).toMatch(/^The server has no database of that name/);
    const unknownUser = { url: url.replace("//postgres@", "//no_such_user:hidden-pw@") };
    expect(await complaint(1, ["inspect", "k"], unknownUser)).toMatch(/^The database refused the user or the password/);
  });

  it("is told as JSON with --json, with the code of the errors page", async () => {
    const { number } = await port("closed");
    const { code, stdout, stderr } = await cli([
      "status",
      "--json",
      `--database=postgres://u:hidden-pw@127.0.0.1:${number}/d`,
    ]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(JSON.parse(stderr)).toEqual({
      error: { code: "idempotency_store_unavailable", sqlState: null, message: expect.stringContaining("was refused") },
    });
  });

  it.each(["mysql://u:hidden-pw@h/d", "hidden-pw", "postgres://u:hidden#pw@h/d", "postgres://u:hidden-pw@h:port/d"])(
    "is a usage error where %s is no PostgreSQL URL",
    async (url) => {
      const said = await complaint(2, ["status"], { url });
      expect(said).toMatch(/^DATABASE_URL is not a PostgreSQL URL\. Write postgres:\/\/user:password@host/);
      expect(said).not.toContain("hidden");
    },
  );
});

describe("a schema that does not fit", () => {
  it.each([["status"], ["inspect", "k"], ["purge"]])("is missing for %s, which creates nothing", async (...args) => {
    const { url } = await createDatabase({ migrated: false });
    expect(await complaint(1, args, { url })).toMatch(/^The database has no Oncekey schema .*run "oncekey migrate"/);
    const asJson = await cli([...args, "--json"], { url });
    expect(JSON.parse(asJson.stderr).error.code).toBe("oncekey_schema_missing");
    expect(await query(url, "SELECT 1 FROM pg_namespace WHERE nspname = 'oncekey'")).toEqual([]);
  });

  it("is newer than this version for every command", async () => {
    const { url } = await createDatabase();
    await query(url, "UPDATE oncekey.migration SET minimum_reader = 999");
    for (const command of [["migrate"], ["status"], ["inspect", "k"], ["purge"]]) {
      expect(await complaint(1, command, { url })).toMatch(/^The database was migrated by a newer version/);
    }
  });

  it("lacks a migration", async () => {
    const { url } = await createDatabase();
    await query(url, "DELETE FROM oncekey.migration WHERE number = 1");
    expect(await complaint(1, ["status"], { url })).toMatch(/^The database lacks \d+ migration.*run "oncekey migrate"/);
  });
});

describe("the database client", () => {
  it("is Postgres.js where pg is not installed", async () => {
    const project = await cliProject(["postgres"]);
    const { url } = await createDatabase({ migrated: false });
    expect(await cli(["migrate"], { url, project })).toMatchObject({ code: 0, stderr: "" });
    await (await entriesOn(url)).charge("k1");
    const { stdout, code } = await cli(["inspect", "k1", "--json"], { url, project });
    expect(code).toBe(0);
    expect(JSON.parse(stdout).entries[0]).toMatchObject({ state: "succeeded", outcome: { kind: "stored" } });
    expect(await cli(["status"], { url, project })).toMatchObject({ code: 0, stderr: "" });
    const { number } = await port("closed");
    const refused = { url: `postgres://u:hidden-pw@127.0.0.1:${number}/d`, project };
    expect(await complaint(1, ["purge"], refused)).toMatch(/^The connection to the database was refused/);
  });

  it("is asked for where neither is installed", async () => {
    const project = await cliProject([]);
    const url = "postgres://u:hidden-pw@127.0.0.1/d";
    expect(await complaint(1, ["status"], { url, project })).toMatch(/neither "pg" nor "postgres".*npm install pg/);
    const { stderr } = await cli(["status", "--json"], { url, project });
    expect(JSON.parse(stderr).error.code).toBe("oncekey_driver_missing");
  });

  it("is named where it is installed but broken", async () => {
    const project = await cliProject(["postgres"]);
    await installBroken(project, "pg");
    const said = await complaint(1, ["status"], { url: "postgres://u@127.0.0.1/d", project });
    expect(said).toMatch(/^The database client "pg" is installed but cannot be loaded/);
  });
});

describe("the database URL", () => {
  it("stands in no output, nor does its password, wherever it was given and whatever goes wrong", async () => {
    const database = await createDatabase();
    const secrets = ["s3cr%65tw0rd", "s3cretw0rd"];
    const url = database.url.replace("//postgres@", "//postgres:s3cr%65tw0rd@");
    const { number } = await port("closed");
    const refused = `postgres://u:s3cr%65tw0rd@127.0.0.1:${number}/d`;
    const runs: [string[], CliOptions][] = [
      [["status"], { url }],
      [["status", "--json", "--database", url], {}],
      [["inspect", "k"], { url }],
      [["status"], { url: refused }],
      [["status", "--json"], { url: refused }],
      [[url], {}],
      [["status", url], {}],
      [["status", `--${url}`], {}],
      [["status", `--databse=${url}`], {}],
      [["status", "--database", url.replace("postgres://", "postgers://")], {}],
      [["migrate", "--grants", url], { url }],
      [["purge", "--batch", url], { url }],
      [["status", "--schema", url], { url }],
      // The server repeats what it does not know: the password, given as the database's name.
      [["status"], { url: `${url.replace(/\/t_\w+$/, "/s3cretw0rd")}` }],
    ];
    for (const [args, options] of runs) {
      const { stdout, stderr } = await cli(args, options);
      expect(stdout + stderr).not.toBe("");
      expect(secrets.filter((secret) => `${stdout}${stderr}`.includes(secret))).toEqual([]);
    }
    const repeated = await cli(["status"], { url: `${url}?options=-c%20s3cretw0rd%3D1` });
    expect(repeated.stderr).toContain("the details are withheld");
    expect(repeated.stderr).not.toContain("s3cretw0rd");
  }, 120_000);
});
