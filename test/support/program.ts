import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";

/** A program of ours in a process of its own. */
export interface Program {
  /** Where it listens; empty for one that does not. */
  readonly url: string;
  readonly pid: number;
  /** All that it has written so far, standard output and standard error. */
  output(): string;
  /** How it ended: `SIGKILL`, or an exit code as text. */
  readonly ended: Promise<string>;
  signal(name: NodeJS.Signals): void;
}

/** How a program is started. */
export interface ProgramOptions {
  /** The JavaScript file, and what is given to it. */
  readonly file: string;
  readonly args?: readonly string[];
  /** Its whole environment, but for PATH. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Gets what it writes, as it comes. */
  readonly onText?: (text: string) => void;
}

const START_LIMIT_MS = 60_000;

/** Starts a program without waiting for anything. The child is told to `own`, so that the caller can see to its end. */
export function spawnProgram(options: ProgramOptions, own: (child: ChildProcess) => void): Program {
  const { file, args = [], env, cwd, onText } = options;
  const child = spawn(process.execPath, [file, ...args], {
    cwd,
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  own(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      onText?.(text);
    });
  }
  // `close`, not `exit`: what it has written is complete only then.
  const ended = new Promise<string>((done) => child.once("close", (code, signal) => done(signal ?? String(code))));
  return { url: "", pid: child.pid ?? 0, output: () => output, ended, signal: (name) => void child.kill(name) };
}

/** Starts a program and waits for its ready line. Raises with all that it has written where it ends before. */
export async function startProgram(options: ProgramOptions, own: (child: ChildProcess) => void): Promise<Program> {
  const program = spawnProgram(options, own);
  const ready = await readyLine(program);
  return { ...program, url: ready.api ?? ready.url ?? "" };
}

async function readyLine({ output, ended }: Program): Promise<{ readonly api?: string; readonly url?: string }> {
  const deadline = performance.now() + START_LIMIT_MS;
  let how: string | null = null;
  void ended.then((value) => {
    how = value;
  });
  for (;;) {
    const line = /^oncekey [a-z ]+ ready (\{.*\})$/m.exec(output())?.[1];
    if (line !== undefined) return JSON.parse(line);
    if (how !== null || performance.now() > deadline) throw new Error(`Not ready (${how ?? "too slow"}):\n${output()}`);
    await sleep(20);
  }
}

/** SIGKILL; resolves when it is gone. */
export async function killProgram(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((done) => child.once("exit", done));
  child.kill("SIGKILL");
  await gone;
}
