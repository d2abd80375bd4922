import { spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../../support/free-port.ts";
import { atEnd } from "../../support/postgres.ts";
import { packedPackage } from "./packed-package.ts";

const examples = fileURLToPath(new URL("../../../examples/frameworks/", import.meta.url));
const ENV: NodeJS.ProcessEnv = {
  ...process.env,
  NEXT_TELEMETRY_DISABLED: "1",
  NODE_ENV: "production",
  NODE_OPTIONS: "",
};

/** A framework's example as a user has it: a folder of its own, with the built package in its `node_modules`. */
export interface BuiltExample {
  /** Runs one of the framework's programs, by its path below the example's `node_modules`; all that it said. */
  build(program: string, ...args: string[]): Promise<string>;
  /** Starts a program of the folder (or of `node_modules`) on a free port; resolves once it serves. */
  start(program: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<RunningExample>;
  remove(): Promise<void>;
}

/** A server of a built example. */
export interface RunningExample {
  readonly url: string;
  /** Asks it to stop and waits until it is gone. */
  stop(): Promise<void>;
}

let packed: Promise<string> | undefined;

/** The package, built once for all examples of a test file. */
async function packOnce(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "oncekey-packed-"));
  atEnd(() => rm(folder, { recursive: true, force: true }));
  await packedPackage(folder);
  return folder;
}

/**
 * Copies an example of examples/frameworks below itself, where it finds what is installed there and its build stays out of
 * the way of a developer's; `hidden` is a folder that is ignored by git and by the framework.
 */
export async function copiedExample(name: string, hidden: string): Promise<BuiltExample> {
  const source = join(examples, name);
  await mkdir(join(source, hidden), { recursive: true });
  const folder = await mkdtemp(join(source, hidden, "e2e-"));
  const names = (await readdir(source)).filter((entry) => !entry.startsWith(".") && entry !== "node_modules");
  await Promise.all(names.map((entry) => cp(join(source, entry), join(folder, entry), { recursive: true })));
  packed ??= packOnce();
  await cp(await packed, join(folder, "node_modules/oncekey"), { recursive: true });
  const program = (path: string) => (path.startsWith(".") ? join(folder, path) : join(source, "node_modules", path));
  return {
    build: (path, ...args) => finished(folder, [program(path), ...args]),
    start: (path, args, env) => serving(folder, [program(path), ...args], env),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** A program, all that it said, and the exit code it ends with. */
function launch(cwd: string, args: readonly string[], env: NodeJS.ProcessEnv = ENV) {
  const child = spawn(process.execPath, [...args], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  }
  const gone = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { child, gone, said: () => said };
}

async function finished(cwd: string, args: readonly string[]): Promise<string> {
  const { gone, said } = launch(cwd, args);
  const code = await gone;
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${String(code)}:\n${said()}`);
  return said();
}

async function serving(
  cwd: string,
  args: readonly string[],
  own: Readonly<Record<string, string>>,
): Promise<RunningExample> {
  const port = await freePort();
  const env = { ...ENV, PORT: String(port), NITRO_PORT: String(port), HOST: "127.0.0.1", ...own };
  const { child, gone, said } = launch(cwd, args, env);
  let ended = false;
  void gone.then(() => {
    ended = true;
  });
  const url = `http://127.0.0.1:${port}`;
  const stop = async () => {
    child.kill("SIGTERM");
    await gone;
  };
  for (;;) {
    if (ended) throw new Error(`${args.join(" ")} ended:\n${said()}`);
    const answer = await fetch(`${url}/effects`).catch(() => null);
    if (answer?.ok === true) return { url, stop };
    await answer?.body?.cancel();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
