import type { Request, Response } from "express";
import { json, type Outcome, type RouteForm } from "oncekey";
import { idempotent } from "oncekey/express";
import { bearerOf, callerOf } from "../auth.ts";
import { parseExact } from "../exact-json.ts";
import type { Invoice } from "../operations/invoices.ts";
import { sendJson } from "../problem.ts";
import { decimalOf, minorOf } from "./_money.ts";
import { mountVendor, type Vendor } from "./_vendor.ts";
import type { MountDialect } from "./index.ts";

/**
 * A create method as Google's guidelines have it (AIP-133): `POST /v1beta/customers/{customer}/invoices?requestId=…` with the
 * invoice as its body, whose `amount` is a `google.type.Money`.
 */
export const mountGoogle: MountDialect = (app, parts) => {
  const { createInvoice } = parts.operations;
  const invoice = idempotent(createInvoice, { scope: callerOf, accepts: ["json"], form: invoices });
  mountVendor(app, parts, google, (router) => router.post("/", invoice));
};

const google: Vendor = {
  path: "/v1beta/customers/:customer/invoices",
  tokenOf: bearerOf,
  refuse(_request, response) {
    sendError(response, 401, "UNAUTHENTICATED", "A valid access token is required. Nothing was run.");
  },
  /** Not INTERNAL, which no client sends again by itself (AIP-194). */
  sendFault(response) {
    const message = "Something went wrong here. Send the same request again with the same requestId.";
    sendError(response, 503, "UNAVAILABLE", message);
  },
};

function sendError(response: Response, code: number, status: string, message: string): void {
  sendJson(response, code, { error: { code, message, status, details: [] } });
}

/** Members of an invoice that are not read here stay in it, and the operation refuses what it does not know. */
const invoices: RouteForm<Request> = {
  input(body, request) {
    const {
      amount,
      labels,
      requestId: _,
      request_id: __,
      ...others
    } = (body ?? {}) as Readonly<Record<string, unknown>>;
    const { currencyCode, units, nanos } = (amount ?? {}) as Money;
    return {
      ...others,
      customer_id: request.params.customer,
      amount_minor: minorOf(decimalText({ units, nanos }), currencyCode),
      currency: currencyCode,
      ...(labels !== undefined && { metadata: labels }),
    };
  },
  answer(outcome) {
    const invoice = invoiceOf(outcome);
    return json(200, {
      name: `customers/${invoice.customer_id}/invoices/${invoice.id.replace(/^inv_/, "")}`,
      state: invoice.status.toUpperCase(),
      amount: moneyOf(invoice),
      labels: invoice.metadata ?? {},
      createTime: invoice.created_at,
    });
  },
};

/** `google.type.Money`; `units` is an int64, which JSON has as text. */
interface Money {
  readonly currencyCode?: unknown;
  readonly units?: unknown;
  readonly nanos?: unknown;
}

/** `null` where it is no amount, or a negative one. */
function decimalText({ units = "0", nanos = 0 }: Money): string | null {
  const isAmount =
    typeof units === "string" && Number.isInteger(nanos) && (nanos as number) >= 0 && (nanos as number) < 1e9;
  return isAmount ? `${units}.${String(nanos).padStart(9, "0")}` : null;
}

function moneyOf({ amount_minor, currency }: Invoice): Money {
  const [units, fraction = ""] = decimalOf(amount_minor, currency).split(".");
  const nanos = Number(fraction.padEnd(9, "0"));
  return { currencyCode: currency, units, ...(nanos > 0 && { nanos }) };
}

/** Its members were written by the operation itself; only the amount changes its type, with its size. */
function invoiceOf({ body }: Outcome): Invoice {
  const invoice = parseExact(new TextDecoder().decode(body)) as Invoice;
  return { ...invoice, amount_minor: BigInt(invoice.amount_minor) };
}
