import { spawn } from "node:child_process";
import { once } from "node:events";

/** How a program ended, and what it printed, both streams together. `code` is `null` where it had to be killed. */
export interface Ended {
  readonly code: number | null;
  readonly output: string;
}

/** Where and how long a program runs. */
export interface RunOptions {
  readonly cwd: string;
  readonly limitMs: number;
  readonly env?: NodeJS.ProcessEnv;
}

/** Process groups that run now; they do not end with us by themselves. */
const running = new Set<number>();

process.once("exit", () => {
  for (const pid of running) killGroup(pid);
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

/**
 * Runs node with these arguments. Past the limit its whole process group is killed: broken code may hang, and what it
 * started must not stay.
 */
export async function runNode(args: readonly string[], { cwd, limitMs, env }: RunOptions): Promise<Ended> {
  const child = spawn(process.execPath, args, {
    cwd,
    env: { ...process.env, ...env },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const pieces: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece: Buffer) => pieces.push(piece));
  const { pid } = child;
  if (pid === undefined) throw new Error("A process could not be started.");
  running.add(pid);
  const timer = setTimeout(() => killGroup(pid), limitMs);
  const [code] = (await once(child, "close")) as [number | null];
  clearTimeout(timer);
  // What it left behind holds ports and databases that the next one needs.
  killGroup(pid);
  running.delete(pid);
  return { code, output: Buffer.concat(pieces).toString() };
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Nothing of it is left.
  }
}
