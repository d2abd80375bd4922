import type { Request, Response } from "express";
import { json, type OperationResponse, type RouteForm } from "oncekey";
import { idempotent } from "oncekey/express";
import { bearerOf, callerOf } from "../auth.ts";
import { type Charge, chargeContext } from "../operations/charges.ts";
import { sendJson } from "../problem.ts";
import { chargeOutcome } from "./_charge.ts";
import { mountVendor, type Vendor } from "./_vendor.ts";
import type { MountDialect } from "./index.ts";

/**
 * Square's `POST /v2/payments`: `source_id` is the card, `amount_money` what it pays. What else a payment may say
 * (`location_id`, `note`, `customer_id` …) is let pass and not looked at.
 */
export const mountSquare: MountDialect = (app, parts) => {
  const charge = idempotent(parts.operations.createCharge, {
    scope: callerOf,
    context: (request: Request) => chargeContext(callerOf(request)),
    accepts: ["json"],
    form: payments,
  });
  mountVendor(app, parts, square, (router) => router.post("/", charge));
};

interface SquareError {
  readonly category: string;
  readonly code: string;
  readonly detail: string;
}

const square: Vendor = {
  path: "/v2/payments",
  tokenOf: bearerOf,
  refuse(_request, response) {
    const detail = "A valid access token is required. Nothing was run.";
    sendError(response, 401, { category: "AUTHENTICATION_ERROR", code: "UNAUTHORIZED", detail });
  },
  sendFault(response) {
    const detail = "Something went wrong here. Send the same request again with the same idempotency_key.";
    sendError(response, 500, { category: "API_ERROR", code: "INTERNAL_SERVER_ERROR", detail });
  },
};

function sendError(response: Response, status: number, error: SquareError): void {
  sendJson(response, status, { errors: [error] });
}

/** As much of a payment as is read here; whatever is there instead, the operation refuses. */
interface Payment {
  readonly source_id?: unknown;
  readonly amount_money?: { readonly amount?: unknown; readonly currency?: unknown };
}

const payments: RouteForm<Request> = {
  input(body) {
    const { source_id, amount_money } = (body ?? {}) as Payment;
    return { amount_minor: amount_money?.amount, currency: amount_money?.currency, source: source_id };
  },
  answer(outcome, request) {
    const { kind, charge } = chargeOutcome(outcome);
    const payment = paymentOf(charge, request.member("location_id"));
    return kind === "succeeded" ? json(200, { payment: { ...payment, status: "COMPLETED" } }) : declined(payment);
  },
};

function paymentOf(charge: Charge, locationId: unknown) {
  const money = { amount: charge.amount_minor, currency: charge.currency };
  return {
    id: charge.id.replace(/^ch_/, ""),
    created_at: charge.created_at,
    amount_money: money,
    total_money: money,
    source_type: "CARD",
    ...(typeof locationId === "string" && { location_id: locationId }),
  };
}

/** Square shows the failed payment beside the errors. */
function declined(payment: Readonly<Record<string, unknown>>): OperationResponse {
  const error: SquareError = {
    category: "PAYMENT_METHOD_ERROR",
    code: "CARD_DECLINED",
    detail: "The card was declined.",
  };
  return json(402, { errors: [error], payment: { ...payment, status: "FAILED" } });
}
