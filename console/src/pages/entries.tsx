import { useEffect, useState } from "preact/hooks";
import { type EntryPage, findEntries, type Row, type Search, STATES } from "../data/entries.ts";
import { RequestError } from "../data/request.ts";
import { type ListPage, useList } from "../load.ts";
import { EntryLink, Name, StateBadge, When } from "../parts/facts.tsx";
import { Choice, Field } from "../parts/field.tsx";
import { Empty } from "../parts/states.tsx";
import { type Column, ListOf, Table } from "../parts/table.tsx";
import { hashOf } from "../route.ts";
import { takeSearchFocus } from "../search-focus.ts";
import { plainWord } from "../words.ts";

/** An entry page as a list takes it. */
export const listPage = ({ entries, next }: EntryPage): ListPage<Row> => ({ items: entries, next });

/** What every table of entries shows. */
export const ENTRY_COLUMNS: readonly Column<Row>[] = [
  { name: "Entry", cell: ({ id }) => <EntryLink id={id} /> },
  { name: "Key", cell: ({ key }) => <span class="mono">{key}</span> },
  { name: "State", cell: ({ state }) => <StateBadge state={state} /> },
  {
    name: "Operation",
    cell: ({ operation, tenant, client }) => (
      <>
        <Name of={operation} /> <span class="second quiet">{client === null ? tenant : `${tenant} / ${client}`}</span>
      </>
    ),
  },
];

const COLUMNS: readonly Column<Row>[] = [
  ...ENTRY_COLUMNS,
  { name: "Attempt", cell: ({ attempt }) => attempt, end: true },
  { name: "Status", cell: ({ status }) => status ?? "–", end: true },
  { name: "First claimed", cell: ({ createdAt }) => <When at={createdAt} /> },
];

/** Search, and what it found; without one the newest. */
export function EntriesPage({ query }: { readonly query: URLSearchParams }) {
  const shared = sharedSearch(query);
  // Keys and references stay here: the address may be seen, kept and sent to others.
  const [secret, setSecret] = useState<Search>({});
  const search = { ...shared, ...secret };
  const list = useList(JSON.stringify(search), (cursor, asking) => findEntries(search, cursor, asking).then(listPage));
  const find = (wanted: Search) => {
    const { key, reference, ...rest } = wanted;
    setSecret({ ...(key !== undefined && { key }), ...(reference !== undefined && { reference }) });
    location.hash = hashOf("entries", null, rest);
    if (JSON.stringify(wanted) === JSON.stringify(search)) list.reload();
  };
  const isUnindexed = list.error instanceof RequestError && list.error.code === "console_index_missing";
  return (
    <>
      <h1>Entries</h1>
      <SearchForm key={query.toString()} search={search} onFind={find} />
      {isUnindexed && Object.keys(search).length === 0 ? (
        <Empty title="Say what you are looking for">
          The newest of all entries are listed where the console has its indexes:{" "}
          <code>oncekey console --create-indexes</code>. An id, or a key together with tenant, client and operation, is
          found without.
        </Empty>
      ) : (
        <ListOf list={list} what="entries" empty={<NothingFound isSearch={Object.keys(search).length > 0} />}>
          {(items) => <Table caption="Entries, newest first" columns={COLUMNS} items={items} keyOf={({ id }) => id} />}
        </ListOf>
      )}
    </>
  );
}

function NothingFound({ isSearch }: { readonly isSearch: boolean }) {
  return isSearch ? (
    <Empty title="Nothing found">
      Look at the spelling, or leave something out. What was purged is not found any more.
    </Empty>
  ) : (
    <Empty title="No entries yet">An entry appears here with the first request that brings a key.</Empty>
  );
}

const SHARED = ["id", "tenant", "client", "operation", "state", "from", "to"] as const;

function sharedSearch(query: URLSearchParams): Search {
  return Object.fromEntries(SHARED.flatMap((name) => (query.get(name) ? [[name, query.get(name)]] : [])));
}

function SearchForm({ search, onFind }: { readonly search: Search; readonly onFind: (search: Search) => void }) {
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({
    ...search,
    from: localInput(search.from),
    to: localInput(search.to),
  });
  const field = (name: keyof Search, label: string, more: { type?: "datetime-local"; hint?: string } = {}) => (
    <Field
      label={label}
      name={name}
      value={typed[name] ?? ""}
      onValue={(value) => setTyped({ ...typed, [name]: value })}
      autoComplete="off"
      spellcheck={false}
      {...more}
    />
  );
  useEffect(takeSearchFocus, []);
  const submit = (event: Event) => {
    event.preventDefault();
    onFind(searchOf(typed));
  };
  return (
    <form class="search" data-search onSubmit={submit}>
      {field("key", "Key")}
      {field("id", "Entry id", { hint: "8 digits or more" })}
      {field("reference", "Reference")}
      {field("tenant", "Tenant")}
      {field("client", "Client")}
      {field("operation", "Operation")}
      <Choice
        label="State"
        value={typed.state ?? ""}
        choices={[["", "any"], ...STATES.map((state) => [state, plainWord(state)] as const)]}
        onValue={(state) => setTyped({ ...typed, state })}
      />
      {field("from", "Claimed from", { type: "datetime-local" })}
      {field("to", "Claimed before", { type: "datetime-local" })}
      <div class="actions">
        <button type="submit" class="primary">
          Search
        </button>
        <button type="button" onClick={() => onFind({})}>
          Clear
        </button>
      </div>
    </form>
  );
}

/** What was typed, without what is empty; local times as instants. */
function searchOf(typed: Readonly<Record<string, string>>): Search {
  const given = Object.entries(typed)
    .map(([name, value]) => [name, value.trim()] as const)
    .filter(([, value]) => value !== "");
  return Object.fromEntries(
    given.map(([name, value]) => [name, name === "from" || name === "to" ? new Date(value).toISOString() : value]),
  );
}

/** An instant as the browser's field for local time takes it. */
function localInput(iso: string | undefined): string {
  if (iso === undefined) return "";
  const at = new Date(iso);
  return Number.isNaN(at.getTime())
    ? ""
    : new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
