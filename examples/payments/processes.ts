import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** A process that can be recognised later. A pid alone is reused; pid and start time are not. */
export interface ProcessMark {
  readonly pid: number;
  /** Boot and start tick where the system tells them; empty elsewhere. */
  readonly startedAt: string;
}

/** The mark of a living process, or `null` where there is none (a zombie waiting for its parent counts as dead). */
export function markOf(pid: number): ProcessMark | null {
  const stat = readOrNull(`/proc/${pid}/stat`);
  if (stat === null)
    return readOrNull("/proc/self/stat") === null && answersSignals(pid) ? { pid, startedAt: "" } : null;
  // The command name may hold spaces and parentheses; the fields after the last one are regular.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const boot = readOrNull("/proc/sys/kernel/random/boot_id")?.trim() ?? "";
  return fields[0] === "Z" || fields[0] === "X" ? null : { pid, startedAt: `${boot}:${fields[19]}` };
}

/** Whether that very process still lives. */
export function isAlive(mark: ProcessMark): boolean {
  const now = markOf(mark.pid);
  return now !== null && now.startedAt === mark.startedAt;
}

/** The mark of this process. */
export function ownMark(): ProcessMark {
  const mark = markOf(process.pid);
  if (mark === null) throw new Error("This process cannot see itself in /proc.");
  return mark;
}

/** Polls until the condition gives a value, at most `limitMs`; `null` when the time is over. */
export async function until<T>(limitMs: number, condition: () => Promise<T | null> | T | null): Promise<T | null> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const value = await condition();
    if (value !== null) return value;
    if (performance.now() > deadline) return null;
    await sleep(50);
  }
}

/** Asks a process to end, waits `graceMs`, then kills it. Resolves when it is gone. */
export async function endProcess(mark: ProcessMark, graceMs: number): Promise<void> {
  const gone = () => (isAlive(mark) ? null : true);
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    if (isAlive(mark)) process.kill(mark.pid, signal);
    if ((await until(graceMs, gone)) === true) return;
  }
  throw new Error(`Process ${mark.pid} did not end after SIGKILL.`);
}

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

function answersSignals(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
