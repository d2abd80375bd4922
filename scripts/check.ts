/** What every check script shares: where the repository is, and how a check ends. */
import { fileURLToPath } from "node:url";

/** The root folder of the repository. */
export const repositoryRoot: string = fileURLToPath(new URL("..", import.meta.url));

/** Ends a check: prints the figures when it found nothing, else every problem, and sets the exit code to 1. */
export function reportCheck(name: string, figures: string, problems: readonly string[]): void {
  if (problems.length === 0) {
    console.log(`${name}: ${figures}`);
    return;
  }
  for (const problem of problems) console.error(`${name}: ${problem}`);
  console.error(`${name}: ${problems.length} problem(s)`);
  process.exitCode = 1;
}
