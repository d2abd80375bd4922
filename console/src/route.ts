import { useEffect, useState } from "preact/hooks";

/** The pages, in the order of the navigation; `key` follows `g` on the keyboard. */
export const PAGES = [
  { name: "overview", title: "Overview", key: "o" },
  { name: "entries", title: "Entries", key: "e" },
  { name: "unresolved", title: "Unresolved", key: "u" },
  { name: "outbox", title: "Outbox", key: "x" },
  { name: "clients", title: "Clients", key: "c" },
  { name: "upkeep", title: "Upkeep", key: "k" },
  { name: "audit", title: "Audit", key: "a" },
] as const;

/** The name of a page. */
export type PageName = (typeof PAGES)[number]["name"];

/** Where the page stands. An address holds ids, tenants and operations; never a key. */
export interface Route {
  readonly page: PageName;
  /** What the page is about: an entry's id. */
  readonly id: string | null;
  readonly query: URLSearchParams;
}

/** Reads a fragment such as `#/entries/5f0c…` or `#/outbox?state=pending`; anything else is the overview. */
function routeOf(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [name, id = ""] = path.split("/", 2);
  const page = PAGES.find((one) => one.name === name)?.name ?? "overview";
  return { page, id: page === "entries" && /^[0-9a-f]{64}$/.test(id) ? id : null, query: new URLSearchParams(query) };
}

/** The address of a page. */
export function hashOf(page: PageName, id: string | null = null, query: Readonly<Record<string, string>> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== "");
  const asked = given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
  return `#/${page}${id === null ? "" : `/${id}`}${asked}`;
}

/** Goes there. */
export function goTo(page: PageName): void {
  location.hash = hashOf(page);
}

/** The route, as it changes. */
export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const follow = () => setHash(location.hash);
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return routeOf(hash);
}
