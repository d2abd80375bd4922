import type { ByCampaign } from "./canary.ts";
import { runNode } from "./program.ts";
import { firstLine, type Verdict } from "./verdict.ts";

const LIMIT_MS = 300_000;

/** Runs a campaign, short. `caught`: the named check failed; `broken`: it ended without telling. */
export async function tryCampaign(root: string, { lab, options, check }: ByCampaign): Promise<Verdict> {
  const args = ["--conditions=oncekey-source", "--import", "tsx", lab, ...options];
  const { code, output } = await runNode(args, { cwd: root, limitMs: LIMIT_MS });
  if (code === null) return { kind: "broken", why: `no end within ${LIMIT_MS / 1_000} s` };
  const line = output.split("\n").find((one) => /^(?:ok|FAIL) /.test(one) && one.includes(check));
  if (line === undefined) return { kind: "broken", why: `its check did not come: ${firstLine(output)}` };
  return line.startsWith("ok")
    ? { kind: "clean" }
    : { kind: "caught", how: firstLine(line.slice("FAIL ".length), 160) };
}
