import { readdirSync, readFileSync } from "node:fs";

/** Sends a signal; a process that is gone already is no error. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // Gone.
  }
}

/** A file's text; empty where it cannot be read. */
export function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** The ids of all processes of the machine. */
export function processes(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** Whether it runs: neither gone nor a zombie that nobody has waited for yet (`kill -0` succeeds for those). */
export function runs(pid: number): boolean {
  const state = afterName(pid)[0];
  return state !== undefined && state !== "Z" && state !== "X";
}

/** A process and all that it has started, itself first. */
export function familyOf(pid: number): number[] {
  const children = processes().filter((one) => afterName(one)[1] === String(pid));
  return [pid, ...children.flatMap(familyOf)];
}

/** `/proc/PID/stat` behind the name: state, parent, and more. The name may hold spaces and brackets. */
function afterName(pid: number): string[] {
  const stat = textOf(`/proc/${pid}/stat`);
  return stat === "" ? [] : stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}
