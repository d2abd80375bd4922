import { spawn } from "node:child_process";
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "../../support/bundle.ts";
import { atEnd } from "../../support/postgres.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const source = join(root, "src/cli/main.ts");

/** What a run of the command gave. */
export interface CliRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** How the command is run. */
export interface CliOptions {
  /** Becomes DATABASE_URL; default: none. */
  readonly url?: string;
  /** See {@link cliProject}; default: one with `pg`. */
  readonly project?: string;
}

let usual: Promise<string> | undefined;

/**
 * Runs `oncekey` with these arguments as a process of its own. The command is bundled once a test file: a hundred
 * processes that each translate the sources for themselves would take minutes.
 */
export async function cli(args: readonly string[], { url, project }: CliOptions = {}): Promise<CliRun> {
  const cwd = project ?? (await usualProject());
  return run([join(cwd, PROGRAM), ...args], cwd, url);
}

const PROGRAM = "oncekey/dist/cli/main.js";

function usualProject(): Promise<string> {
  usual ??= cliProject(["pg"]);
  return usual;
}

/** The command's file in a project with `pg`, for tests that keep a process running. */
export async function cliProgram(): Promise<string> {
  return join(await usualProject(), PROGRAM);
}

/** Runs `oncekey` from the sources of this repository, as they are. */
export function cliFromSources(args: readonly string[], url?: string): Promise<CliRun> {
  return run(["--conditions=oncekey-source", "--import", "tsx", source, ...args], root, url);
}

function run(args: readonly string[], cwd: string, url: string | undefined): Promise<CliRun> {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(?:PG|DATABASE_URL|NO_COLOR|FORCE_COLOR)/.test(name),
  );
  const env = { ...Object.fromEntries(inherited), ...(url === undefined ? {} : { DATABASE_URL: url }) };
  const child = spawn(process.execPath, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      output[name] += text;
    });
  }
  return new Promise((done, fail) => {
    child.once("error", fail);
    child.once("close", (code) => done({ code, ...output }));
  });
}

/** A project of its own that has the command, and only these packages installed. Removed at the end of the test file. */
export async function cliProject(packages: readonly string[]): Promise<string> {
  const project = await mkdtemp(join(tmpdir(), "oncekey-cli-"));
  atEnd(() => rm(project, { recursive: true, force: true }));
  await writeFile(join(project, "package.json"), '{ "name": "project", "private": true }');
  await bundle({ programs: { main: source }, outDir: join(project, "oncekey/dist/cli"), ending: "js" });
  await copyFile(join(root, "package.json"), join(project, "oncekey/package.json"));
  await mkdir(join(project, "node_modules"));
  for (const name of packages) await symlink(join(root, "node_modules", name), join(project, "node_modules", name));
  return project;
}

/** Installs a package whose code throws when it is loaded. */
export async function installBroken(project: string, name: string): Promise<void> {
  const folder = join(project, "node_modules", name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "index.js"), 'throw new Error("broken on purpose");');
}
