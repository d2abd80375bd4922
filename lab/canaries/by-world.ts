import type { ByWorld } from "./canary.ts";
import { runNode } from "./program.ts";
import { firstLine, type Verdict } from "./verdict.ts";

const LIMIT_MS = 600_000;

/**
 * How many schedules of a world are run: of the unbroken tree a few, since exploring it is a campaign of its own; of a
 * broken one as many as it takes, up to here.
 */
const SCHEDULES = { unbroken: 500, broken: 30_000 };

/** What the explorer prints of a violation: what is violated, and the schedule that replays it. */
const VIOLATION = /^VIOLATION in \S+: (.*)$/m;
const REPLAY = /--replay (\S+)/;

/**
 * Explores one world until something is violated. `caught`: a violation, with the schedule that replays it; `broken`: the
 * explorer ended in another way.
 */
export async function tryWorld(root: string, { world }: ByWorld, tree: keyof typeof SCHEDULES): Promise<Verdict> {
  const explorer = ["--conditions=oncekey-source", "--import", "tsx", "lab/explore.ts"];
  const asked = ["--world", world, "--schedules", String(SCHEDULES[tree]), "--workers", "1", "--until-violation"];
  const { code, output } = await runNode([...explorer, ...asked], { cwd: root, limitMs: LIMIT_MS });
  if (code === 0) return { kind: "clean" };
  if (code === null) return { kind: "broken", why: `no end within ${LIMIT_MS / 1_000} s` };
  const violated = VIOLATION.exec(output)?.[1];
  const replay = REPLAY.exec(output)?.[1];
  if (violated === undefined || replay === undefined) {
    return { kind: "broken", why: `no violation was shown: ${firstLine(lastWords(output))}` };
  }
  return { kind: "caught", how: `${firstLine(violated)} (schedule ${replay})` };
}

function lastWords(output: string): string {
  return output.trim().split("\n").at(-1) ?? "";
}
