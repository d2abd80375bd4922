/**
 * Shows where the library's own time goes: runs a gate over the memory store under load, writes a processor profile, and
 * prints the functions that took longest by themselves.
 *
 *   npm run bench:flame -- [--seconds 5] [--bytes 1024] [--top 30] [--out micro.cpuprofile]
 *
 * The profile opens as a flame graph in the developer tools of a browser, and in editors.
 */
import { copyFile, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { runCommand, wholeNumber } from "../lab/support/command.ts";
import { type Bundled, withBundle } from "./micro/bundled.ts";
import { type SelfTime, selfTimes } from "./micro/self-time.ts";

const USAGE = "npm run bench:flame -- [--seconds 5] [--bytes 1024] [--top 30] [--out micro.cpuprofile]";
const SAMPLE_EVERY_US = 200;

/** Runs the load under the profiler; gives the path of the profile. */
async function profiled({ folder, run }: Bundled, seconds: number, bytes: number): Promise<string> {
  const flags = ["--cpu-prof", `--cpu-prof-dir=${folder}`, `--cpu-prof-interval=${SAMPLE_EVERY_US}`];
  const code = await run(flags, [String(seconds * 1_000), String(bytes)]);
  const profile = (await readdir(folder)).find((name) => name.endsWith(".cpuprofile"));
  if (code !== 0 || profile === undefined) throw new Error(`The load ended with code ${code} and left no profile.`);
  return join(folder, profile);
}

function tableOf(times: readonly SelfTime[]): string {
  const rows = times.map(({ name, where, selfUs, share }) => {
    return `| ${(share * 100).toFixed(1)} % | ${(selfUs / 1_000).toFixed(0)} | ${name} | ${where} |`;
  });
  return ["| self time | ms | function | where |", "| ---: | ---: | --- | --- |", ...rows].join("\n");
}

async function main(): Promise<number> {
  const option = { type: "string" } as const;
  const { values } = parseArgs({ options: { seconds: option, bytes: option, top: option, out: option } });
  const seconds = wholeNumber("--seconds", values.seconds ?? 5);
  const bytes = wholeNumber("--bytes", values.bytes ?? 1_024, 200);
  const top = wholeNumber("--top", values.top ?? 30);
  return withBundle("./load.ts", async (bundled) => {
    const profile = await profiled(bundled, seconds, bytes);
    const times = selfTimes(await readFile(profile, "utf8"), await readFile(bundled.file, "utf8"));
    process.stdout.write(`${tableOf(times.slice(0, top))}\n`);
    if (values.out !== undefined) await copyFile(profile, values.out);
    return 0;
  });
}

await runCommand(USAGE, main);
