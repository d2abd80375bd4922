import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { findProgram } from "../support/brokers/program.ts";
import { createDatabase, passTime } from "../support/postgres.ts";
import { cli, cliProgram } from "./support/cli.ts";
import { entriesOn } from "./support/cli-entries.ts";
import { commandNames, helpOf, optionNames, section } from "./support/cli-help.ts";

const DAY_MS = 86_400_000;

/** A process for each command: on a busy machine they take their time. */
const WALK_MS = 600_000;

const page = readFileSync(new URL("../../docs/cli.md", import.meta.url), "utf8");

/** Commands that need no database of their own. */
const WITHOUT_DATABASE = ["worker", "verify", "completion"];

/** What a command must be given to be understood, apart from the database; the others need nothing. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  inspect: ["k1"],
  resolve: ["00000000", "--release"],
  outbox: ["list"],
  erase: ["--tenant", "acme"],
};

describe("every command", { timeout: WALK_MS }, () => {
  it("has a help with usage, options, an example and the exit codes, in lines that fit", async () => {
    for (const name of await commandNames()) {
      const help = await helpOf(name);
      expect(section(help, /^usage$/)).toEqual([expect.stringMatching(new RegExp(`^ {2}oncekey ${name}( |$)`))]);
      expect(await optionNames(name)).toEqual(expect.arrayContaining(["--json", "--help"]));
      const examples = section(help, /^examples?$/);
      expect(examples).not.toEqual([]);
      for (const example of examples) expect(example).toContain(`oncekey ${name}`);
      expect(section(help, /^exit codes$/)).toContainEqual("  0    done");
      const long = help.split("\n").filter((line) => line.length > 120 && !examples.includes(line));
      expect(long).toEqual([]);
    }
  });

  it("has the same help behind -h", async () => {
    const [name = ""] = await commandNames();
    expect(await cli([name, "-h"])).toEqual({ code: 0, stdout: await helpOf(name), stderr: "" });
    expect(await cli(["-h"])).toEqual({ code: 0, stdout: await helpOf(), stderr: "" });
  });

  it("refuses an option that it does not have with 2, and says so as JSON where asked", async () => {
    for (const name of await commandNames()) {
      const { code, stdout, stderr } = await cli([name, "--no-such-option", "--json"]);
      expect({ name, code, stdout }).toEqual({ name, code: 2, stdout: "" });
      const message = expect.stringMatching(new RegExp(`"--no-such-option".* Run "oncekey ${name} --help"`));
      expect(JSON.parse(stderr)).toEqual({ error: { code: null, sqlState: null, message } });
    }
  });

  it("takes the database from --database or DATABASE_URL, and ends with 2 where there is neither", async () => {
    const withDatabase = (await commandNames()).filter((name) => !WITHOUT_DATABASE.includes(name));
    for (const name of withDatabase) {
      expect(await optionNames(name)).toEqual(expect.arrayContaining(["--database", "--schema"]));
      const { code, stdout, stderr } = await cli([name, ...(NEEDED[name] ?? [])]);
      expect({ name, code, stdout }).toEqual({ name, code: 2, stdout: "" });
      expect(stderr).toMatch(
        name === "rotate" ? /No encryption keys are given/ : /No database is named\. Set DATABASE_URL/,
      );
    }
    const { url } = await createDatabase();
    const given = await cli(["status", "--json", "--database", url]);
    expect(given).toMatchObject({ code: 0, stderr: "" });
  });

  it("stands in the manual, with every option and the same exit codes", async () => {
    const listed = [...page.matchAll(/^\| \[`oncekey ([a-z]+)/gm)].map(([, name]) => name);
    expect(listed.toSorted()).toEqual((await commandNames()).toSorted());
    for (const name of await commandNames()) {
      if (name === "verify") continue;
      const own = page.slice(page.indexOf(`\n## oncekey ${name}\n`)).split("\n## ")[1] ?? "";
      const everywhere = ["--database", "--schema", "--json", "--help"];
      const options = (await optionNames(name)).filter((option) => !everywhere.includes(option));
      expect(options.filter((option) => !own.includes(`| \`${option}`))).toEqual([]);
    }
    const codes = section(await helpOf(), /^exit codes$/).map((line) => /\d+/.exec(line)?.[0]);
    expect([...page.matchAll(/^\| (\d+) \| /gm)].map(([, code]) => code)).toEqual(codes);
  });
});

/** Runs the command on a terminal; what it shows there, standard error included. */
async function onTerminal(args: readonly string[], url: string, environment: Readonly<Record<string, string>> = {}) {
  const words = [process.execPath, await cliProgram(), ...args].map((word) => `'${word}'`);
  // Node takes every terminal under CI for one without colours.
  const { NO_COLOR: _no, FORCE_COLOR: _force, CI: _ci, ...inherited } = process.env;
  const env = { ...inherited, TERM: "xterm", DATABASE_URL: url, ...environment };
  const { stdout } = await promisify(execFile)("script", ["-qec", words.join(" "), "/dev/null"], { env });
  return stdout;
}

describe.skipIf(findProgram("script") === null)("on a terminal", () => {
  it("what needs a look has a colour, unless NO_COLOR is set or the output goes elsewhere", async () => {
    const { url } = await createDatabase();
    await (await entriesOn(url)).payout("k1");
    expect(await onTerminal(["status"], url)).toContain("\u001b[33m");
    expect(await onTerminal(["status"], url, { NO_COLOR: "1" })).not.toContain("\u001b");
    expect((await cli(["status"], { url })).stdout).not.toContain("\u001b");
  });

  it("long work says how far it is, takes that away again, and says nothing of it elsewhere", async () => {
    const { url } = await createDatabase();
    const entries = await entriesOn(url);
    await entries.charge("k1");
    await entries.charge("k2");
    /** The first line of progress, and what stands there in the end. */
    const linesOf = async (...args: string[]) => {
      const shown = await onTerminal(args, url).catch((error: { stdout: string }) => error.stdout);
      const lines = shown.split("\r\u001b[K");
      return [lines[0], lines[1], lines.at(-1)];
    };
    expect(await linesOf("erase", "--tenant", "acme")).toEqual([
      "",
      expect.stringMatching(/^oncekey: 1 statement, \d/),
      expect.stringMatching(/^Would be erased /),
    ]);
    expect(await linesOf("doctor")).toEqual([
      "",
      expect.stringMatching(/^oncekey: check 1 of \d+, schema, \d/),
      expect.stringMatching(/^schema /),
    ]);
    await passTime(url, DAY_MS + 1);
    expect(await linesOf("purge", "--batch", "1")).toEqual([
      "",
      expect.stringMatching(/^oncekey: 1 entry purged, \d/),
      expect.stringMatching(/^Purged 2 entries /),
    ]);
    expect(await cli(["purge"], { url })).toMatchObject({ stderr: "" });
  });
});
