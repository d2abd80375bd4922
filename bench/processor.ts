import { readdirSync, readFileSync } from "node:fs";

/**
 * Processor time that all processes below this one have used, in milliseconds: database, clients and measured process
 * together, without this one. `null` where the kernel does not tell (Linux does). A busy neighbour slows rates, and
 * this hardly: what a request costs in all is what bounds the rate of a machine that has nothing else to do.
 */
export function processorBelowMs(): number | null {
  try {
    const children = childrenByParent();
    const below = (pid: string): string[] => (children.get(pid) ?? []).flatMap((child) => [child, ...below(child)]);
    return below(String(process.pid)).reduce((sum, pid) => sum + usedMs(pid), 0);
  } catch {
    return null;
  }
}

function childrenByParent(): Map<string, string[]> {
  const children = new Map<string, string[]>();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const parent = read(`/proc/${pid}/stat`)
      .replace(/^.*\) /, "")
      .split(" ")[1];
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  return children;
}

/** Of all threads, to the nanosecond; the file that speaks for the whole process counts in hundredths of a second. */
function usedMs(pid: string): number {
  const threads = list(`/proc/${pid}/task`).map((thread) => read(`/proc/${pid}/task/${thread}/schedstat`));
  return threads.reduce((sum, text) => sum + Number(text.split(" ")[0]) / 1e6, 0);
}

// Processes may end while they are looked at.
const read = (path: string) => orElse(() => readFileSync(path, "utf8"), "");
const list = (path: string) => orElse(() => readdirSync(path), []);

function orElse<Value>(get: () => Value, otherwise: Value): Value {
  try {
    return get();
  } catch {
    return otherwise;
  }
}
