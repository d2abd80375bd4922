import type { Bounded, Overview } from "../data/overview.ts";
import { type Live, useLive } from "../live.ts";
import { Chart } from "../parts/chart.tsx";
import { When } from "../parts/facts.tsx";
import { Loading } from "../parts/states.tsx";
import { hashOf } from "../route.ts";
import { bounded, bytes } from "../words.ts";
import { chartsOf } from "./overview-charts.ts";

/** What waits at this moment, and what happened in the last hour. */
export function OverviewPage() {
  const live = useLive();
  return (
    <>
      <h1>Overview</h1>
      {live.overview === null ? <Loading what="the figures" /> : <Waiting overview={live.overview} />}
      <Charts live={live} />
    </>
  );
}

function Waiting({ overview }: { readonly overview: Overview }) {
  const { unresolved, inProgress, lapsed, outbox, purgeDue, schema, tables } = overview;
  const size = tables.reduce((sum, table) => sum + table.bytes, 0);
  return (
    <>
      <ul class="tiles">
        <Tile name="Unresolved" value={unresolved} alarm hash={hashOf("unresolved")} />
        <Tile name="Dead letters" value={outbox.dead} alarm hash={hashOf("outbox")} />
        <Tile name="In progress" value={inProgress} hash={hashOf("entries", null, { state: "in_progress" })} />
        <Tile name="Lease over" value={lapsed} />
        <Tile name="Messages waiting" value={outbox.pending} hash={hashOf("outbox", null, { state: "pending" })} />
        <Tile name="To be purged" value={purgeDue} hash={hashOf("upkeep")} />
      </ul>
      <p class="quiet">
        Schema {schema.name}, version {schema.version}, layout {schema.layout}
        {tables.length === 0 ? "" : `, ${bytes(size)} in ${tables.length} tables`}
      </p>
    </>
  );
}

/** One big number. Where an alarm stands above nought, it says so by more than a colour. */
function Tile({ name, value, hash, alarm = false }: { name: string; value: Bounded; hash?: string; alarm?: boolean }) {
  const isBad = alarm && value.count > 0;
  return (
    <li class={isBad ? "tile bad" : "tile"}>
      <p class="tile-name">{hash === undefined ? name : <a href={hash}>{name}</a>}</p>
      <p class="tile-value">{bounded(value)}</p>
      <p class="quiet">
        {value.oldestAt === null ? (
          "none"
        ) : (
          <>
            oldest <When at={value.oldestAt} />
          </>
        )}
      </p>
    </li>
  );
}

function Charts({ live }: { readonly live: Live }) {
  if (live.source === "none") {
    return (
      <p class="notice">
        This console has seen no request yet, so there are no charts. Where it is mounted in the service, give its{" "}
        <code>observe</code> to <code>createOncekey</code>; on its own, start it with <code>--metrics</code> and the
        address of the service's metrics.
      </p>
    );
  }
  if (live.points.length === 0) return null;
  return (
    <div class="charts">
      {chartsOf(live).map((chart) => (
        <Chart key={chart.title} {...chart} />
      ))}
    </div>
  );
}
