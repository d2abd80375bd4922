import { type AuditRecord, audit } from "../data/audit.ts";
import { useList } from "../load.ts";
import { EntryLink, When } from "../parts/facts.tsx";
import { Empty } from "../parts/states.tsx";
import { type Column, ListOf, Table } from "../parts/table.tsx";
import { plainWord } from "../words.ts";

const COLUMNS: readonly Column<AuditRecord>[] = [
  { name: "When", cell: ({ at }) => <When at={at} /> },
  { name: "Who", cell: ({ by }) => by },
  {
    name: "What",
    cell: ({ action, verdict }) => (verdict === null ? plainWord(action) : `${plainWord(action)}: ${verdict}`),
  },
  { name: "Entry", cell: ({ entryId }) => (entryId === null ? "–" : <EntryLink id={entryId} />) },
  { name: "Tenant", cell: ({ tenant }) => tenant ?? "all" },
  { name: "Why", cell: ({ note }) => note ?? "–" },
];

/** What was done by hand, newest first. */
export function AuditPage() {
  const list = useList("audit", (cursor, asking) =>
    audit(cursor, asking).then(({ records, next }) => ({ items: records, next })),
  );
  return (
    <>
      <h1>Audit</h1>
      <ListOf
        list={list}
        what="the audit"
        empty={
          <Empty title="Nothing was done by hand yet">
            Decisions, looks at masked content and changes of messages appear here.
          </Empty>
        }
      >
        {(items) => (
          <Table
            caption="What was done by hand, newest first"
            columns={COLUMNS}
            items={items}
            keyOf={(one) => `${one.at} ${one.by} ${one.action} ${one.entryId} ${one.messageId ?? ""}`}
          />
        )}
      </ListOf>
    </>
  );
}
