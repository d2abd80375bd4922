import type { ComponentChildren } from "preact";
import type { Listed } from "../load.ts";
import { Failed, Loading } from "./states.tsx";

/** A column of a table: on a phone its name stands before each value. */
export interface Column<Item> {
  readonly name: string;
  readonly cell: (item: Item) => ComponentChildren;
  /** For numbers. */
  readonly end?: boolean;
}

/** A table, which becomes a list of cards on a phone. */
export function Table<Item>({
  caption,
  columns,
  items,
  keyOf,
}: {
  readonly caption: string;
  readonly columns: readonly Column<Item>[];
  readonly items: readonly Item[];
  readonly keyOf: (item: Item) => string;
}) {
  return (
    <table>
      <caption class="unseen">{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ name, end }) => (
            <th key={name} scope="col" class={end ? "end" : ""}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <tr key={keyOf(item)}>
            {columns.map(({ name, cell, end }) => (
              <td key={name} data-name={name} class={end ? "end" : ""}>
                <div>{cell(item)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A list that is loaded page by page: what is there, what went wrong, and how to get more. */
export function ListOf<Item>({
  list,
  what,
  empty,
  children,
}: {
  readonly list: Listed<Item>;
  readonly what: string;
  readonly empty: ComponentChildren;
  readonly children: (items: readonly Item[]) => ComponentChildren;
}) {
  const { value, error, loading, more } = list;
  return (
    <>
      {error === null ? null : <Failed error={error} retry={() => list.reload()} />}
      {value === null && loading ? <Loading what={what} /> : null}
      {value !== null && value.length === 0 && error === null ? empty : null}
      {value !== null && value.length > 0 ? children(value) : null}
      {more === null || value === null ? null : (
        <button type="button" class="more" onClick={more}>
          Show more
        </button>
      )}
    </>
  );
}
