import { useEffect } from "preact/hooks";
import { goTo, PAGES } from "./route.ts";

const SWITCH = "oncekey-console-keys";
/** A letter counts as the second of two while this long has not passed. Milliseconds. */
const PAIR_MS = 1_500;

/** Whether single letters do something: some people speak to their computer, and every word would. */
export const keysAreOn = (): boolean => localStorage.getItem(SWITCH) !== "off";

/** Remembered in this browser. */
export const turnKeys = (on: boolean): void => localStorage.setItem(SWITCH, on ? "on" : "off");

/** `/`, `?`, and `g` with a letter, wherever nobody types and no dialog is open. */
export function useKeys(search: () => void, help: () => void): void {
  useEffect(() => {
    let sinceG = Number.NEGATIVE_INFINITY;
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !keysAreOn() || isBusy(event.target)) return;
      const page = event.timeStamp - sinceG < PAIR_MS ? PAGES.find(({ key }) => key === event.key) : undefined;
      sinceG = event.key === "g" ? event.timeStamp : Number.NEGATIVE_INFINITY;
      if (page !== undefined) goTo(page.name);
      else if (event.key === "/") search();
      else if (event.key === "?") help();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [search, help]);
}

function isBusy(target: EventTarget | null): boolean {
  if (document.querySelector("dialog[open]") !== null) return true;
  return target instanceof HTMLElement && target.matches("input, textarea, select");
}
