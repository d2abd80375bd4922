import type { Client, SubmissionResult } from "oncekey/client";
import { createElement } from "react";
import { type SubmissionState, useSubmission } from "./use-submission.ts";

/** Properties of `PayButton`. */
export interface PayButtonProps {
  readonly client: Client;
  /** Of the order: all components and tabs with it share one payment. */
  readonly order: string;
  readonly amountMinor: number;
}

/** A button that pays an order once, however often it is pressed, shown or loaded. */
export function PayButton({ client, order, amountMinor }: PayButtonProps) {
  const { state, submit, resume } = useSubmission(client, `order ${order}`);
  const pay = () => {
    submit({ url: "/v1/charges", json: { amount_minor: amountMinor, currency: "EUR", source: "tok_visa" } });
  };
  return createElement(
    "section",
    null,
    isOpen(state)
      ? createElement("button", { type: "button", onClick: resume }, "Ask again")
      : createElement("button", { type: "button", onClick: pay, disabled: !mayPay(state) }, "Pay"),
    createElement("p", { role: "status" }, textOf(state)),
  );
}

/** Whether it may have been paid and nobody here knows: then only asking again is safe. */
function isOpen(state: SubmissionState): boolean {
  if (state.kind !== "ended") return state.kind === "broken";
  const { result } = state;
  if (result.kind === "refused") return !result.certain;
  return result.kind === "unknown" || result.kind === "aborted" || (result.kind === "in_the_way" && !result.settled);
}

function mayPay(state: SubmissionState): boolean {
  if (state.kind !== "ended") return state.kind === "idle";
  return state.result.kind === "refused" || state.result.kind === "not_kept";
}

function textOf(state: SubmissionState): string {
  if (state.kind === "ended") return textOfResult(state.result);
  if (state.kind === "sending") return "Paying …";
  return state.kind === "broken" ? "This browser does not let the page look at what it has kept." : "";
}

function textOfResult(result: SubmissionResult): string {
  if (result.kind === "succeeded") return `Paid: ${(result.response.json() as { readonly id: string }).id}`;
  // A refusal that does not tell of an earlier attempt is no answer to "was it paid?".
  if (result.kind === "refused" && result.certain) return `Refused: ${result.code ?? result.response.status}`;
  if (result.kind === "not_kept") return "Nothing was sent: this browser cannot keep the payment.";
  if (result.kind === "in_the_way" && result.settled) return "This order was paid before, with other contents.";
  return "Not known yet whether it was paid. It is kept: ask again.";
}
