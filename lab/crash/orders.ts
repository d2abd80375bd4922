import { randomUUID } from "node:crypto";
import type { Random } from "../support/random.ts";
import type { Caller, What } from "./history.ts";
import { BODY_MARK } from "./terms.ts";

/** Something that a user of the service wants once: its key, its payload, and two others that its key must never run. */
export interface Order {
  readonly caller: Caller;
  readonly token: string;
  readonly what: What;
  readonly path: string;
  readonly key: string;
  readonly payload: string;
  readonly changed: string;
  readonly rival: string;
}

/** Makes orders. Each payload is told apart from all others of the campaign by its amount. */
export interface OrderBook {
  next(): Order;
  /** A charge that was answered: from now on it may be refunded. */
  charged(order: Pick<Order, "caller">, id: string): void;
}

/** Everybody that the example knows, with the token. */
export const CUSTOMERS: readonly (readonly [token: string, caller: Caller])[] = [
  ["sk_test_acme", { tenant: "acme", client: "app" }],
  ["sk_test_acme_batch", { tenant: "acme", client: "batch" }],
  ["sk_test_globex", { tenant: "globex", client: "app" }],
];
const PATHS: Readonly<Record<What, string>> = { invoice: "/v1/invoices", charge: "/v1/charges", refund: "/v1/refunds" };
const ORDERS_OF_A_LIFE = 1_000_000;
const STEP = 10;
const DECLINED_SHARE = 0.1;
const TOO_MUCH_SHARE = 0.1;
const REMEMBERED_CHARGES = 50;

/** The book of one life of a client process: `life` counts them, so that no amount comes twice. */
export function orderBook(random: Random, life: number): OrderBook {
  const charges: { readonly caller: Caller; readonly id: string }[] = [];
  let count = 0;
  return {
    next() {
      const [token, caller] = random.pick(CUSTOMERS);
      const amount = (life * ORDERS_OF_A_LIFE + ++count) * STEP;
      const charge = charges.filter((one) => one.caller.tenant === caller.tenant).at(-1 - random.between(0, 5));
      const what = chosen(random, charge !== undefined);
      const payloadOf = payloads(what, random, charge?.id ?? "");
      const [payload, changed, rival] = [payloadOf(amount), payloadOf(amount + 1), payloadOf(amount + 2)];
      return { caller, token, what, path: PATHS[what], key: `lk-${randomUUID()}`, payload, changed, rival };
    },
    charged({ caller }, id) {
      charges.push({ caller, id });
      if (charges.length > REMEMBERED_CHARGES) charges.shift();
    },
  };
}

function chosen(random: Random, canRefund: boolean): What {
  const drawn = random.unit();
  if (drawn < 0.4) return "charge";
  return drawn < 0.65 && canRefund ? "refund" : "invoice";
}

/** Above every charge: the refusal of the business itself. */
const TOO_MUCH = 10 ** 15;

function payloads(what: What, random: Random, chargeId: string): (amount: number) => string {
  if (what === "invoice") {
    return (amount_minor) =>
      JSON.stringify({ customer_id: `cus_${BODY_MARK}`, amount_minor, currency: "EUR", metadata: { note: BODY_MARK } });
  }
  if (what === "charge") {
    const source = random.unit() < DECLINED_SHARE ? "tok_declined" : `tok_${BODY_MARK}`;
    return (amount_minor) => JSON.stringify({ amount_minor, currency: "EUR", source });
  }
  const over = random.unit() < TOO_MUCH_SHARE ? TOO_MUCH : 0;
  // Small beside every charge, so that many refunds fit into one.
  return (amount) => JSON.stringify({ charge_id: chargeId, amount_minor: over + (amount % 1_000) + 1 });
}
