import { writeFileSync } from "node:fs";
import { get } from "node:http";
import { awaited, type FaultKind, forMs } from "../fault.ts";
import { chosen, underWay } from "./processes.ts";

const HOUR_MS = 3_600_000;
const SEEN_LIMIT_MS = 8_000;

/** The wall clock of one API leaves those of all others by an hour, and comes back; and of one worker with it. */
export function clock(direction: "ahead" | "behind"): FaultKind {
  const offset = direction === "ahead" ? "+1h" : "-1h";
  return {
    name: `clock_${direction}`,
    lane: "processes",
    missing: ({ crew }) => (crew.of("api")[0]?.clock == null ? "libfaketime is not installed" : null),
    async strike(world, random) {
      const [api, worker] = [chosen(world, "api", random), chosen(world, "worker", random)];
      const lastsMs = random.between(1_500, 3_000);
      return api.exclusively(async () => {
        for (const { clock: file } of [api, worker]) if (file !== null) writeFileSync(file, offset);
        // Its own answers tell its time: without that this fault would show nothing.
        const shifted = await awaited(async () => Math.abs(await aheadMs(api.port)) > HOUR_MS / 2, SEEN_LIMIT_MS);
        const met = shifted ? await mostUnderWay(() => underWay(world, api), lastsMs) : 0;
        for (const { clock: file } of [api, worker]) if (file !== null) writeFileSync(file, "+0");
        await awaited(async () => Math.abs(await aheadMs(api.port)) < HOUR_MS / 2, SEEN_LIMIT_MS);
        return {
          did: `the clocks of ${api.name} and ${worker.name} at ${offset} for ${lastsMs} ms; ${met} under way`,
          met,
        };
      });
    },
  };
}

/** The most requests that were under way at one time, of many looks. */
async function mostUnderWay(look: () => number, lastsMs: number): Promise<number> {
  const endAtMs = performance.now() + lastsMs;
  let most = 0;
  while (performance.now() < endAtMs) {
    most = Math.max(most, look());
    await forMs(5);
  }
  return most;
}

/** By how much the clock of an API is ahead of ours; 0 where it does not answer. */
function aheadMs(port: number): Promise<number> {
  return new Promise((resolve) => {
    const asking = get({ port, host: "127.0.0.1", path: "/", agent: false, timeout: 2_000 }, (response) => {
      response.resume();
      resolve(Date.parse(response.headers.date ?? "") - Date.now());
    });
    asking.once("timeout", () => asking.destroy());
    asking.once("error", () => resolve(0));
  });
}
