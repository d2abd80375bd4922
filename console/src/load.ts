import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Asking } from "./data/request.ts";

/** What is loaded, as far as it is here. A failed reload leaves what was there. */
export interface Loaded<Value> {
  readonly value: Value | null;
  readonly error: unknown;
  readonly loading: boolean;
  /** `quiet`: not by a person's hand. */
  reload(quiet?: boolean): void;
}

/** Loads when the page opens and whenever `about` changes; what was asked for before is taken back. */
export function useLoad<Value>(about: string, load: (asking: Asking) => Promise<Value>): Loaded<Value> {
  const [state, setState] = useState<{ about: string; value: Value | null; error: unknown; loading: boolean }>({
    about,
    value: null,
    error: null,
    loading: true,
  });
  const running = useRef<AbortController | null>(null);
  const latest = useRef(load);
  latest.current = load;
  const reload = useCallback(
    (quiet = false) => {
      running.current?.abort();
      const own = new AbortController();
      running.current = own;
      setState((was) => ({ about, value: was.about === about ? was.value : null, error: null, loading: true }));
      latest.current({ signal: own.signal, quiet }).then(
        (value) => own.signal.aborted || setState({ about, value, error: null, loading: false }),
        (error: unknown) => own.signal.aborted || setState((was) => ({ ...was, error, loading: false })),
      );
    },
    [about],
  );
  useEffect(() => {
    reload();
    return () => running.current?.abort();
  }, [reload]);
  return { ...state, reload };
}

/** Does it whenever the value becomes another; not for the first one that is known. */
export function useChange(value: string | number | undefined, act: () => void): void {
  const before = useRef(value);
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    if (before.current !== undefined && value !== before.current) latest.current();
    before.current = value;
  }, [value]);
}

/** A list that is loaded page by page. */
export interface Listed<Item> extends Loaded<readonly Item[]> {
  /** Loads the next page; `null`: this was all. */
  readonly more: (() => void) | null;
}

/** One page of a list. */
export interface ListPage<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

/** Loads a list's first page as {@link useLoad} does, and more on demand. */
export function useList<Item>(
  about: string,
  load: (cursor: string | null, asking: Asking) => Promise<ListPage<Item>>,
): Listed<Item> {
  const [further, setFurther] = useState<{
    of: unknown;
    items: readonly Item[];
    next: string | null;
    error: unknown;
  } | null>(null);
  const first = useLoad(about, (asking) => load(null, asking));
  const added = further !== null && further.of === first.value ? further : null;
  const next = added === null ? (first.value?.next ?? null) : added.next;
  const more = () => {
    const of = first.value;
    const before = added?.items ?? [];
    load(next, {}).then(
      (page) => setFurther({ of, items: [...before, ...page.items], next: page.next, error: null }),
      (error: unknown) => setFurther({ of, items: before, next, error }),
    );
  };
  return {
    ...first,
    value: first.value === null ? null : [...first.value.items, ...(added?.items ?? [])],
    error: first.error ?? added?.error ?? null,
    more: next === null ? null : more,
  };
}
