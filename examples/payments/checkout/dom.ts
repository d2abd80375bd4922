import type { PageForm } from "oncekey/client/form";

// The examples are compiled without the browser's types, so that no program of Node's sees them: this is what the page uses.

/** An element of the page. */
export interface PageElement {
  hidden: boolean;
  textContent: string | null;
  readonly dataset: Record<string, string>;
  addEventListener(type: "click", listener: () => void): void;
}

interface Browser {
  readonly document: { getElementById(id: string): unknown };
  readonly location: { readonly search: string };
}

const { document, location } = globalThis as unknown as Browser;

/** The element of that id. Raises where the page has none. */
export function element(id: string): PageElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`The page has no element #${id}.`);
  return found as PageElement;
}

/** The form of that id. */
export const formElement = (id: string) => element(id) as unknown as PageForm;

/** A parameter of the page's address. */
export const parameter = (name: string) => new URLSearchParams(location.search).get(name);
