import express, { type ErrorRequestHandler, type Request, type Response } from "express";
import { json, type RouteForm } from "oncekey";
import { idempotent } from "oncekey/express";
import { authenticate, callerOf } from "../auth.ts";
import { chargeContext } from "../operations/charges.ts";
import { describeError, sendJson } from "../problem.ts";
import { chargeOutcome } from "./_charge.ts";
import type { MountDialect } from "./index.ts";

/**
 * Adyen's Checkout `POST /v72/payments` for stored cards: `paymentMethod.storedPaymentMethodId` is taken for the card. What
 * else a payment may say (`merchantAccount`, `returnUrl`, `shopperReference` …) is let pass and not looked at.
 */
export const mountAdyen: MountDialect = (app, { operations, lab }) => {
  const charge = idempotent(operations.createCharge, {
    scope: callerOf,
    context: (request: Request) => chargeContext(callerOf(request)),
    form: payments,
  });
  const router = express.Router();
  const tokenOf = (request: Request) => request.get("x-api-key");
  router.post("/", authenticate(lab.isRevoked, { tokenOf, refuse }), lab.watch, charge);
  router.use(answerFault);
  app.use("/v72/payments", router);
};

function refuse(_request: Request, response: Response): void {
  sendJson(response, 401, {
    status: 401,
    errorCode: "000",
    message: "A valid API key is required. Nothing was run.",
    errorType: "security",
  });
}

/** What an operation threw was rolled back or is kept as unfinished: the same key may try again. */
const answerFault: ErrorRequestHandler = (error: unknown, _request, response, next) => {
  if (response.headersSent) return next(error);
  console.error(`unexpected: ${describeError(error)}`);
  response.set("transient-error", "true");
  sendJson(response, 500, {
    status: 500,
    errorCode: "000",
    message: "Something went wrong here. Send the same request again with the same idempotency key.",
    errorType: "internal",
  });
};

const payments: RouteForm<Request> = {
  input(body) {
    const { amount, paymentMethod } = (body ?? {}) as Partial<Record<string, Partial<Record<string, unknown>>>>;
    return { amount_minor: amount?.value, currency: amount?.currency, source: paymentMethod?.storedPaymentMethodId };
  },
  /** A declined card is an answer at Adyen, not an error. */
  answer(outcome, request) {
    const { kind, charge } = chargeOutcome(outcome);
    const result =
      kind === "succeeded"
        ? { resultCode: "Authorised" }
        : { resultCode: "Refused", refusalReason: "Refused", refusalReasonCode: "2" };
    return json(200, {
      pspReference: charge.id.replace(/^ch_/, "").slice(0, 16).toUpperCase(),
      ...result,
      amount: { currency: charge.currency, value: charge.amount_minor },
      merchantReference: request.member("reference") ?? null,
    });
  },
};
