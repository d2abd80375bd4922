import { type ChildProcess, fork } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundle } from "../../test/support/bundle.ts";

/** A process of a campaign. */
export interface Member {
  /** What it said when it was ready. */
  readonly said: string | null;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
  /** SIGTERM; resolves when it has ended. */
  stop(): Promise<void>;
  /** SIGSTOP for so long, then SIGCONT: a process that slept through its lease. */
  freezeMs(ms: number): Promise<void>;
}

/** Starts the campaign's programs. */
export interface Fleet {
  /** Resolves when the program says `{ ready }`; other messages go to `heard`. */
  start(program: string, settings: object, heard?: (message: Record<string, unknown>) => void): Promise<Member>;
  /** Kills all that were started and removes the programs. */
  close(): Promise<void>;
}

/** Bundles the programs (name → source), so that each start costs a tenth of a second and not two. */
export async function fleetOf(programs: Readonly<Record<string, string>>): Promise<Fleet> {
  const outDir = await mkdtemp(join(tmpdir(), "oncekey-lab-"));
  await bundle({ programs, outDir });
  const members = new Set<Member>();
  return {
    async start(program, settings, heard = () => {}) {
      const member = await startMember(join(outDir, `${program}.mjs`), settings, heard);
      members.add(member);
      return member;
    },
    async close() {
      await Promise.all([...members].map((member) => member.kill()));
      await rm(outDir, { recursive: true, force: true });
    },
  };
}

async function startMember(
  path: string,
  settings: object,
  heard: (message: Record<string, unknown>) => void,
): Promise<Member> {
  const child = fork(path, {
    execArgv: [],
    env: { ...process.env, NODE_NO_WARNINGS: "1", LAB_SETTINGS: JSON.stringify(settings) },
  });
  const said = await new Promise<string | null>((resolve, reject) => {
    child.on("message", (message: Record<string, unknown>) => {
      if ("ready" in message) resolve(message.ready as string | null);
      else heard(message);
    });
    child.once("exit", (code, signal) => reject(new Error(`${path} ended: ${code ?? signal}`)));
  });
  return {
    said,
    kill: () => ended(child, "SIGKILL"),
    stop: () => ended(child, "SIGTERM"),
    async freezeMs(ms) {
      child.kill("SIGSTOP");
      await new Promise((resolve) => setTimeout(resolve, ms));
      child.kill("SIGCONT");
    },
  };
}

function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill(signal);
  return exited;
}
