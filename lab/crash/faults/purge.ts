import { awaited, type FaultKind, forMs } from "../fault.ts";
import { TIMES } from "../terms.ts";

const GONE_OR_DUE = `
  SELECT (SELECT count(*) FROM lab.deleted_entry)
       + (SELECT count(*) FROM oncekey.entry WHERE expires_at < clock_timestamp()) AS count`;
const GONE = "SELECT count(*)::int AS count FROM lab.deleted_entry";
const LOOK_EVERY_MS = 500;

/** Everything whose retention is over is deleted at once, beside the sweepers that do it all the time. */
export const purge: FaultKind = {
  name: "purge",
  lane: "upkeep",
  async strike({ command, database: { pool } }, random) {
    // While the server is down nothing can be counted: another lane's fault.
    const count = async (sql: string) =>
      Number(
        await pool.query(sql).then(
          ({ rows }) => rows[0]?.count ?? 0,
          () => 0,
        ),
      );
    await awaited(async () => (await count(GONE_OR_DUE)) > 0, TIMES.retentionMs, LOOK_EVERY_MS);
    await forMs(random.between(500, 4_000));
    const { code, output } = await command(["purge", "--json"]);
    // The sweepers are mostly faster: what counts is that entries do go.
    const gone = await count(GONE);
    const said = output.replaceAll(/\s+/g, " ").trim();
    return { did: `oncekey purge ended ${code} (${said}); ${gone} entries are gone by now`, met: gone };
  },
};
