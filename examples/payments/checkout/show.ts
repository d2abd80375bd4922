import type { ClientEvent, SubmissionResult } from "oncekey/client";
import { element } from "./dom.ts";

// What the page says. Every state is text in a live region, so that a screen reader hears it too; `data-state` is for colours.

interface Shown {
  readonly state: string;
  readonly text: string;
  /** What the user can do about it, beside the form's own button. */
  readonly offers?: "again" | "anew";
}

const PAUSED: Readonly<Record<string, string>> = {
  offline: "You are offline. Your payment is kept and goes out when the connection is back.",
  in_progress: "Your payment is being worked on. One moment …",
};

/** Shows what happens on the way to a result. */
export function showEvent(event: ClientEvent): void {
  if (event.kind === "attempt") show({ state: "sending", text: "Sending your payment …" });
  if (event.kind === "waiting_for_other") show({ state: "waiting", text: "Another tab is sending this payment …" });
  if (event.kind === "pause") {
    const text = PAUSED[event.why] ?? "No answer yet. Your payment is kept, and is tried again in a moment …";
    show({ state: event.why, text });
  }
  if (event.kind === "warning") warn(WARNINGS[event.what]);
}

const WARNINGS = {
  storage_cleared:
    "What this browser had kept of an earlier payment was cleared. It may have been carried out: look at your account before you pay again.",
  result_not_kept: "The result below is known, but could not be kept: note it down.",
  window_shortened: "",
  clock_moved: "",
} as const;

/** Shows a result; `null`: nothing was asked for yet. A named order is paid once, so there is nothing to begin after it. */
export function showResult(result: SubmissionResult | null, order: string | null): void {
  if (result === null) warn("");
  const shown = result === null ? { state: "", text: "" } : textOf(result);
  show(order === null || shown.offers !== "anew" ? shown : { state: shown.state, text: shown.text });
}

/** Shows an error that has no result: a storage that cannot be read. */
export function showError(): void {
  const text = "This browser does not let the page look at what it has kept. Nothing was sent.";
  show({ state: "broken", text, offers: "again" });
}

const UNKNOWN: Shown = {
  state: "unknown",
  text: "We do not know yet whether your payment went through. It is kept: ask again, do not pay anew.",
  offers: "again",
};

function textOf(result: SubmissionResult): Shown {
  switch (result.kind) {
    case "succeeded": {
      const charge = result.response.json() as { readonly id: string; readonly amount_minor: number };
      const text = `Paid ${(charge.amount_minor / 100).toFixed(2)} EUR. Reference: ${charge.id}`;
      return { state: "paid", text, offers: "anew" };
    }
    case "refused":
      return result.certain ? refusalOf(result.code) : UNKNOWN;
    case "unknown":
      return result.sent
        ? UNKNOWN
        : { ...UNKNOWN, text: "Your payment did not get through. It is kept: try it again." };
    case "aborted":
      return { state: "aborted", text: "Stopped. Your payment is kept.", offers: "again" };
    case "not_kept":
      return {
        state: "not_kept",
        text: "This browser cannot keep your payment (its storage is full or blocked), so nothing was sent. Free some space and pay again.",
      };
    case "in_the_way":
      return {
        state: "in_the_way",
        text: result.settled
          ? "This was paid already, with other contents. Nothing else was sent."
          : "An earlier payment is not decided yet. Nothing else was sent.",
        offers: "again",
      };
  }
}

function refusalOf(code: string | null): Shown {
  if (code === "card_declined") {
    return { state: "declined", text: "The card was declined. Choose another one and pay again." };
  }
  return { state: "refused", text: `Your payment was refused (${code ?? "no reason given"}). You can correct it.` };
}

function show({ state, text, offers }: Shown): void {
  const status = element("status");
  status.textContent = text;
  status.dataset.state = state;
  element("again").hidden = offers !== "again";
  element("anew").hidden = offers !== "anew";
}

function warn(text: string): void {
  if (text === "" && element("warning").hidden) return;
  element("warning").textContent = text;
  element("warning").hidden = text === "";
}
