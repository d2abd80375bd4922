import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findProgram } from "../support/brokers/program.ts";
import { cli } from "./support/cli.ts";
import { commandNames, optionNames } from "./support/cli-help.ts";

/** A process for each command: on a busy machine they take their time. */
const WALK_MS = 600_000;

let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "oncekey-completion-"));
  for (const shell of ["bash", "zsh", "fish"]) {
    const { code, stdout, stderr } = await cli(["completion", shell]);
    expect({ shell, code, stderr }).toEqual({ shell, code: 0, stderr: "" });
    await writeFile(join(folder, `oncekey.${shell}`), stdout);
  }
  await mkdir(join(folder, "work"));
  await writeFile(join(folder, "work", "a file.js"), "");
});

afterAll(() => rm(folder, { recursive: true, force: true }));

/** Runs a real shell on a few lines. */
async function shell(name: string, script: string): Promise<string> {
  const flags = { bash: ["--norc", "--noprofile"], zsh: ["-f"], fish: ["--no-config"] }[name] ?? [];
  const { stdout } = await promisify(execFile)(name, [...flags, "-c", script], { cwd: join(folder, "work") });
  return stdout;
}

/** What bash offers for the last of these words. */
async function offered(...words: string[]): Promise<string[]> {
  const list = words.map((word) => `'${word}'`).join(" ");
  const stdout = await shell(
    "bash",
    `source ../oncekey.bash
     COMP_WORDS=(oncekey ${list}); COMP_CWORD=${words.length}
     _oncekey 2>/dev/null
     printf '%s\\n' "\${COMPREPLY[@]}"`,
  );
  return stdout.split("\n").filter((line) => line !== "");
}

describe("oncekey completion bash", { timeout: WALK_MS }, () => {
  it("is accepted by bash, which calls it for oncekey", async () => {
    expect(await shell("bash", "source ../oncekey.bash; complete -p oncekey")).toBe("complete -F _oncekey oncekey\n");
  });

  it("offers every command, and those that begin so", async () => {
    expect(await offered("")).toEqual([...(await commandNames()), "--help", "--version"]);
    expect(await offered("stat")).toEqual(["status"]);
  });

  it("offers every option of the command", async () => {
    for (const name of await commandNames()) {
      expect((await offered(name, "--")).toSorted()).toEqual((await optionNames(name)).toSorted());
    }
  });

  it("offers words where one of a list is meant, files where a file is, and nothing for other values", async () => {
    expect(await offered("completion", "")).toEqual(expect.arrayContaining(["bash", "zsh", "fish"]));
    expect(await offered("outbox", "re")).toEqual(["retry"]);
    expect(await offered("worker", "a")).toEqual(["a file.js"]);
    expect(await offered("resolve", "5f0c9a1e", "--succeeded", "")).toEqual(["a file.js"]);
    expect(await offered("resolve", "5f0c9a1e", "--note", "")).toEqual([]);
    expect(await offered("no-such-command", "")).toEqual([]);
  });
});

describe.each(["zsh", "fish"])("oncekey completion %s", { timeout: WALK_MS }, (name) => {
  it("knows every command and option", async () => {
    const { stdout } = await cli(["completion", name, "--json"]);
    const { script, shell: given } = JSON.parse(stdout);
    expect(given).toBe(name);
    for (const command of await commandNames()) {
      expect(script).toMatch(new RegExp(name === "zsh" ? `\\n {4}${command}\\) _arguments ` : ` -a ${command} -d '`));
      for (const option of await optionNames(command)) {
        expect(script).toContain(name === "zsh" ? `'${option}` : `from ${command}' -l ${option.slice(2)} -d '`);
      }
    }
  });

  it.skipIf(findProgram(name) === null)("is accepted by the shell", async () => {
    const load = name === "zsh" ? "autoload -U compinit; compinit -u -D; " : "";
    expect(await shell(name, `${load}source ../oncekey.${name}; echo loaded`)).toBe("loaded\n");
  });
});

describe("oncekey completion", () => {
  it("refuses another shell", async () => {
    const { code, stdout, stderr } = await cli(["completion", "tcsh"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/^oncekey: The shell must be one of bash, zsh, fish\. /);
  });
});
