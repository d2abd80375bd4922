import { goTo } from "./route.ts";

let wanted = false;

/** Puts the focus into the search, on whatever page one is. */
export function wantSearch(): void {
  if (focusSearch()) return;
  // The form takes it when it is drawn.
  wanted = true;
  goTo("entries");
}

/** For the search form, once it is drawn: whether it was waited for. */
export function takeSearchFocus(): void {
  if (wanted) focusSearch();
  wanted = false;
}

function focusSearch(): boolean {
  const field = document.querySelector<HTMLElement>("[data-search] input");
  field?.focus();
  return field !== null;
}
