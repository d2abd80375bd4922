import { storeLayout } from "../../stores/postgres/layout.ts";
import { tableSizes, upkeepFacts, waitingCounts } from "../../stores/postgres/operator/counts.ts";
import { type Call, type ConsoleParts, look } from "../parts.ts";
import { badRequest, Refusal } from "../refusal.ts";
import { STEP_MS } from "../series.ts";

/** What waits, of one tenant or (`null`) of all; with the tables' sizes only for those who see all. */
export async function overviewOf({ database, series }: ConsoleParts, tenant: string | null) {
  const seen = await database.look(async (ask) => ({
    now: new Date(),
    counts: await waitingCounts(ask, tenant),
    tables: tenant === null ? await tableSizes(ask) : [],
    facts: await upkeepFacts(ask),
  }));
  const { schema } = database;
  const migrations = seen.facts.filter(({ kind }) => kind === "migration");
  const layout = seen.facts.find(({ kind }) => kind === "layout");
  const { unresolved, in_progress, lapsed, purge_due, pending, dead } = seen.counts;
  const bytes = tenant === null ? seen.tables.reduce((sum, table) => sum + table.bytes, 0) : null;
  series.gauge(tenant, { unresolved: unresolved.count, bytes });
  return {
    now: seen.now,
    schema: {
      name: schema,
      version: Math.max(0, ...migrations.map(({ number }) => number)),
      layout: layout?.name ?? "plain",
    },
    unresolved,
    inProgress: in_progress,
    lapsed,
    outbox: { pending, dead },
    purgeDue: purge_due,
    tables: seen.tables,
  };
}

/** `GET overview`. */
export function getOverview({ parts, tenant }: Call) {
  return overviewOf(parts, tenant);
}

/** `GET series`: what this process saw in the last hour. */
export function getSeries({ parts, tenant, asked }: Call) {
  const after = asked.query.get("after") ?? "";
  const afterMs = after === "" ? 0 : Date.parse(after);
  if (Number.isNaN(afterMs)) throw badRequest('"after" is not an ISO 8601 instant');
  const source = parts.source();
  return { source, stepMs: STEP_MS, points: source === "none" ? [] : parts.series.points(tenant, afterMs) };
}

/** `GET upkeep`: partitions, purge, sweepers, tables, migrations; of everybody, so for those who see all. */
export async function getUpkeep(call: Call) {
  if (call.tenant !== null) {
    throw new Refusal(
      403,
      "console_tenant_limited",
      "This tells of all tenants, and you see one. Nothing was changed.",
    );
  }
  const { driver, database } = call.parts;
  const layout = await storeLayout(driver, { schema: database.schema });
  const { counts, tables, facts } = await look(call, async (ask) => ({
    counts: await waitingCounts(ask, null),
    tables: await tableSizes(ask),
    facts: await upkeepFacts(ask),
  }));
  const of = (wanted: "sweeper" | "migration") => facts.filter(({ kind }) => kind === wanted);
  return {
    layout: { name: layout.name, behind: layout.behind, aheadUntil: layout.aheadUntil, widthMs: layout.widthMs },
    partitions: layout.partitions.map(({ name, from, to, state, bytes }) => ({
      name,
      fromAt: from,
      toAt: to,
      state,
      bytes,
    })),
    purge: counts.purge_due,
    sweepers: of("sweeper").map(({ name, runKind, number, at }) => ({
      operation: name,
      runKind,
      version: number,
      seenAt: at,
    })),
    tables,
    migrations: of("migration").map(({ name, number, at }) => ({ number, name, appliedAt: at })),
  };
}
