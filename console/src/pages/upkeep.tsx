import type { TableSize } from "../data/overview.ts";
import { type Partition, type Upkeep, upkeep } from "../data/upkeep.ts";
import { useLoad } from "../load.ts";
import { Facts, When } from "../parts/facts.tsx";
import { Empty, Failed, Loading } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { bounded, bytes, count } from "../words.ts";

const SWEEPERS: readonly Column<Upkeep["sweepers"][number]>[] = [
  { name: "Operation", cell: ({ operation }) => operation },
  { name: "Run kind", cell: ({ runKind }) => runKind ?? "–" },
  { name: "Version", cell: ({ version }) => version, end: true },
  { name: "Last seen", cell: ({ seenAt }) => <When at={seenAt} /> },
];

const PARTITIONS: readonly Column<Partition>[] = [
  { name: "Partition", cell: ({ name }) => <span class="mono break">{name}</span> },
  { name: "Expires from", cell: ({ fromAt }) => <When at={fromAt} /> },
  { name: "Expires before", cell: ({ toAt }) => <When at={toAt} /> },
  { name: "Size", cell: (partition) => bytes(partition.bytes), end: true },
];

const TABLES: readonly Column<TableSize>[] = [
  { name: "Table", cell: ({ name }) => <span class="mono">{name}</span> },
  { name: "Rows, about", cell: ({ rows }) => count(rows), end: true },
  { name: "Size", cell: (table) => bytes(table.bytes), end: true },
];

const MIGRATIONS: readonly Column<Upkeep["migrations"][number]>[] = [
  { name: "Number", cell: ({ number }) => number },
  { name: "Migration", cell: ({ name }) => name },
  { name: "Applied", cell: ({ appliedAt }) => <When at={appliedAt} /> },
];

/** Purge, partitions, sweepers, tables and migrations. */
export function UpkeepPage() {
  const { value, error, reload } = useLoad("upkeep", upkeep);
  return (
    <>
      <h1>Upkeep</h1>
      {error === null ? null : <Failed error={error} retry={() => reload()} />}
      {value === null && error === null ? <Loading what="the state of the store" /> : null}
      {value === null ? null : <Shown state={value} />}
    </>
  );
}

function Shown({ state: { layout, partitions, purge, sweepers, tables, migrations } }: { readonly state: Upkeep }) {
  return (
    <>
      {layout.behind ? (
        <p class="notice bad">Partitions for the retention are missing: run a sweeper whose role owns the tables.</p>
      ) : null}
      <Facts
        facts={[
          ["Layout", layout.name],
          ["To be purged", bounded(purge)],
          ["Oldest of them", purge.oldestAt === null ? null : <When at={purge.oldestAt} />],
          ["Partitions made up to", layout.aheadUntil === null ? null : <When at={layout.aheadUntil} />],
        ]}
      />
      <h2>Sweepers</h2>
      {sweepers.length === 0 ? (
        <Empty title="No sweeper was seen lately">
          Nothing is finished, asked again or purged until one runs: <code>createSweeper</code>, or{" "}
          <code>oncekey worker</code>.
        </Empty>
      ) : (
        <Table
          caption="What sweepers take up"
          columns={SWEEPERS}
          items={sweepers}
          keyOf={(one) => `${one.operation} ${one.version}`}
        />
      )}
      {partitions.length === 0 ? null : (
        <>
          <h2>Partitions</h2>
          <Table
            caption="Partitions of the outcomes"
            columns={PARTITIONS}
            items={partitions}
            keyOf={({ name }) => name}
          />
        </>
      )}
      <h2>Tables</h2>
      <Table caption="Tables with their indexes" columns={TABLES} items={tables} keyOf={({ name }) => name} />
      <h2>Migrations</h2>
      <Table
        caption="Migrations"
        columns={MIGRATIONS}
        items={[...migrations].sort((a, b) => a.number - b.number)}
        keyOf={({ number }) => String(number)}
      />
    </>
  );
}
