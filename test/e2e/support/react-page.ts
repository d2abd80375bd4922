import { createClient } from "oncekey/client";
import { indexedDbStorage } from "oncekey/client/indexeddb";
import { createElement, StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { PayButton } from "../../../examples/client/react/pay-button.ts";

// A page for the hook's tests: the button in strict mode, shown and taken away as the test says.

const browser = globalThis as unknown as {
  readonly document: { getElementById(id: string): Parameters<typeof createRoot>[0] };
  readonly location: { readonly search: string };
  show: (shown: boolean) => void;
};
const parameters = new URLSearchParams(browser.location.search);
const client = createClient({ storage: indexedDbStorage() });
const root = createRoot(browser.document.getElementById("root"));

browser.show = (shown) => {
  const order = parameters.get("order") ?? "";
  const amountMinor = Number(parameters.get("amount"));
  const button = createElement(PayButton, { client, order, amountMinor });
  root.render(createElement(StrictMode, null, shown ? button : null));
};
browser.show(true);
