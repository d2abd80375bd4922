/**
 * Adds up what the runs of `.ci/run` said, each under its line `== run: name`: the last thing printed is `N passed, N failed`.
 * A run that ended without its own line counts as a failure. What failed is said again directly before: the log is long,
 * and often only its end is kept.
 *
 *   node .ci/sum.mjs LOG STATUS
 */
import { readFileSync } from "node:fs";

const [log, status] = process.argv.slice(2);
const say = (line) => void process.stdout.write(`${line}\n`);
const SHOWN = 60;
const TALLY = /^(\d+) passed, (\d+) failed$/;
// Ours, vitest's, and the lines of an error that ended a campaign.
const FAILED = /^\s*(FAIL\b|✗|×|not ok\b|skipped:|\w*Error\b.*:|AssertionError\b)/;

// Vitest colours its lines under CI whatever it writes to: a "FAIL" that begins with an escape was not found.
const COLOUR = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, "g");

const runs = readFileSync(log, "utf8")
  .replace(COLOUR, "")
  .split(/^== run: /m)
  .slice(1)
  .map((text) => {
    const [name, ...lines] = text.split("\n");
    const tally = lines.map((line) => TALLY.exec(line)).findLast((found) => found !== null);
    return { name, lines, passed: Number(tally?.[1] ?? 0), failed: Number(tally?.[2] ?? 1), isSilent: !tally };
  });

for (const { name, lines, failed, isSilent } of runs.filter(({ failed }) => failed > 0)) {
  say(`\n== ${name}: ${isSilent ? "ended without its line" : `${failed} failed`}`);
  const told = [...new Set(lines.filter((line) => FAILED.test(line)))].slice(0, SHOWN);
  for (const line of isSilent ? [...told, "its end:", ...lines.slice(-20)] : told) say(line.slice(0, 300));
}

const sum = (pick) => runs.reduce((total, run) => total + pick(run), 0);
const failed = sum((run) => run.failed);
const unexplained = status !== "0" && failed === 0 ? 1 : 0;
say(`${sum((run) => run.passed)} passed, ${failed + unexplained} failed`);
process.exitCode = failed + unexplained === 0 ? 0 : 1;
