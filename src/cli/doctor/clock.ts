import { duration } from "../layout.ts";
import { type Check, numberOf, seen } from "./check.ts";

/** Looks that are made; the one with the shortest way there and back says most. */
const LOOKS = 5;

/** A difference from which on something is wrong with one of the clocks, in milliseconds. */
const APART_MS = 2_000;

/** How far this machine's clock and the database's are apart. */
export const clockCheck: Check = {
  name: "clock",
  needs: "server",
  async look({ sql, now }) {
    let best = { aheadMs: 0, unsureMs: Number.POSITIVE_INFINITY };
    for (let look = 0; look < LOOKS; look += 1) {
      const before = now();
      const [row] = await sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS clock_ms");
      const after = now();
      const unsureMs = (after - before) / 2;
      if (unsureMs < best.unsureMs) best = { aheadMs: (before + after) / 2 - numberOf(row, "clock_ms"), unsureMs };
    }
    const apart = `${duration(Math.abs(best.aheadMs))} ${best.aheadMs < 0 ? "behind" : "ahead of"} the database's`;
    const line = `this machine's is ${apart}, give or take ${duration(best.unsureMs)}`;
    if (Math.abs(best.aheadMs) - best.unsureMs < APART_MS) return seen(line);
    return seen(line, [
      {
        severity: "warning",
        what: `This machine's clock is ${apart} (give or take ${duration(best.unsureMs)}).`,
        why: "Leases and retention go by the database's clock alone and are safe. Times of webhooks' signatures, of logs and of what clients are told by others are not.",
        fix: "Let both machines follow a time server: timedatectl status, chronyc tracking.",
      },
    ]);
  },
};
