import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants, setPriority } from "node:os";

/** Runs Stryker in a copy of the repository, behind what else runs on the machine. Raises where it does not come to an end. */
export async function runStryker(root: string, config: string): Promise<void> {
  const script = "node_modules/@stryker-mutator/core/bin/stryker.js";
  const stdio = ["ignore", "inherit", "inherit"] as const;
  const child = spawn(process.execPath, [script, "run", config], { cwd: root, stdio: [...stdio], detached: true });
  const { pid } = child;
  if (pid === undefined) throw new Error("Stryker could not be started.");
  // Its processes inherit it.
  setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
  // Its group: the workers do not end with it.
  const stop = () => process.kill(-pid, "SIGKILL");
  process.once("exit", stop);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
  const [code] = (await once(child, "close")) as [number | null];
  process.removeListener("exit", stop);
  if (code !== 0) throw new Error(`Stryker ended with code ${code}.`);
}
