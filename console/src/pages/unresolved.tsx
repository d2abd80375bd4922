import { useState } from "preact/hooks";
import { type Row, unresolved } from "../data/entries.ts";
import { useLive } from "../live.ts";
import { useChange, useList } from "../load.ts";
import { When } from "../parts/facts.tsx";
import { DoneNotice, Empty } from "../parts/states.tsx";
import { type Column, ListOf, Table } from "../parts/table.tsx";
import { useOperator } from "../session.ts";
import { DecisionButtons } from "./decide.tsx";
import { ENTRY_COLUMNS, listPage } from "./entries.tsx";

/** What needs a person, oldest first, with what can be done about it. */
export function UnresolvedPage() {
  const [done, setDone] = useState<string | null>(null);
  const { readOnly } = useOperator();
  const list = useList("unresolved", (cursor, asking) => unresolved(cursor, asking).then(listPage));
  const waiting = useLive().overview?.unresolved.count;
  const { reload } = list;
  // Another one came, or somebody else was quicker.
  useChange(waiting, () => reload(true));
  const settled = (message: string) => {
    setDone(message);
    reload();
  };
  return (
    <>
      <h1>Unresolved</h1>
      <p class="lead">
        Nobody knows what these requests did. Look at the other side first, then decide; what you decide is what every
        retry is told.
      </p>
      <DoneNotice text={done} />
      <ListOf
        list={list}
        what="what is unresolved"
        empty={<Empty title="Nothing is unresolved">Nobody has to decide anything.</Empty>}
      >
        {(items) => (
          <Table
            caption="Unresolved entries, oldest first"
            columns={columns(readOnly, settled)}
            items={items}
            keyOf={({ id }) => id}
          />
        )}
      </ListOf>
    </>
  );
}

function columns(readOnly: boolean, onDone: (message: string) => void): readonly Column<Row>[] {
  const shown: Column<Row>[] = [
    ...ENTRY_COLUMNS.filter(({ name }) => name !== "State"),
    { name: "Why", cell: ({ reason }) => reason ?? "–" },
    { name: "First claimed", cell: ({ createdAt }) => <When at={createdAt} /> },
    { name: "Asked again", cell: ({ sweepAt }) => <When at={sweepAt} none="not by itself" /> },
  ];
  if (readOnly) return shown;
  return [
    ...shown,
    {
      name: "Decide",
      cell: (row) => <DecisionButtons row={row} mayRetry={row.runKind !== "transaction"} onDone={onDone} />,
    },
  ];
}
