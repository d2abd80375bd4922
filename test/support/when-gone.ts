import { spawn } from "node:child_process";
import type { Socket } from "node:net";

/**
 * Runs a shell script once this process is gone, however it went: a test runner kills its workers without notice, and
 * servers outlive their parents. The script gets the values as `$1` and on. Gives what takes it back.
 */
export function whenGone(script: string, ...values: readonly string[]): () => void {
  // The shell reads from a pipe that only our end can close.
  const watcher = spawn("sh", ["-c", `read -r _; ${script}`, "sh", ...values], {
    cwd: "/",
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  watcher.unref();
  (watcher.stdin as Socket).unref();
  return () => void watcher.kill("SIGKILL");
}
