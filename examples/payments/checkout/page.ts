import { createClient, type SubmissionRequest } from "oncekey/client";
import { submissionForm } from "oncekey/client/form";
import { indexedDbStorage } from "oncekey/client/indexeddb";
import { localStorageStorage } from "oncekey/client/local-storage";
import { element, formElement, parameter } from "./dom.ts";
import { showError, showEvent, showResult } from "./show.ts";

// The script of the checkout page. `?storage=localstorage` keeps payments there instead of in IndexedDB; `?order=42` gives the
// payment a name of its own, so that all tabs with that order share one payment.

const storage = parameter("storage") === "localstorage" ? localStorageStorage() : indexedDbStorage();
const order = parameter("order");

// The page has no credentials: the browser holds a cookie that scripts cannot read (see session.ts).
const client = createClient({ storage, onEvent: showEvent });

const form = submissionForm(formElement("checkout"), {
  client,
  ...(order !== null && { name: `order ${order}` }),
  request: chargeOf,
  onResult: (result) => showResult(result, order),
  onEvent: showEvent,
  onError: showError,
});

if (order !== null) {
  element("order").textContent = `Order ${order}`;
  element("order").hidden = false;
}
element("again").addEventListener("click", () => void form.resume());
element("anew").addEventListener("click", () => {
  void form.startAnew();
  showResult(null, order);
});

/** The request that the fields ask for. Amounts are whole cents, taken from the digits: a float would round them. */
function chargeOf(fields: FormData): SubmissionRequest {
  const [euros = "", cents = "00"] = String(fields.get("amount")).split(/[.,]/);
  return {
    url: "/v1/charges",
    json: { amount_minor: Number(euros + cents), currency: "EUR", source: String(fields.get("card")) },
  };
}
