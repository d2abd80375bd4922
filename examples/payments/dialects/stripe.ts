import { randomUUID } from "node:crypto";
import express, { type ErrorRequestHandler, type Request, type Response } from "express";
import { json, type OperationResponse, type RouteForm } from "oncekey";
import { idempotent } from "oncekey/express";
import { authenticate, bearerOf, callerOf } from "../auth.ts";
import { type Charge, chargeContext } from "../operations/charges.ts";
import { describeError, type SayProblem, sendJson } from "../problem.ts";
import { chargeOutcome } from "./_charge.ts";
import type { DialectParts, MountDialect } from "./index.ts";

/**
 * Stripe's `POST /v1/payment_intents`, which charges a card at once. Of its parameters it takes `amount`, `currency`,
 * `payment_method` (or `source`), `confirm=true`, `description`, `metadata`.
 */
export const mountStripe: MountDialect = (app, parts) => mount(app, "/v1/payment_intents", parts, paymentIntents);

/**
 * Stripe's API v2 in one path, `POST /v2/payments/off_session_payments`: JSON with `amount` (`value`, `currency`),
 * `payment_method` and `metadata`.
 */
export const mountStripeV2: MountDialect = (app, parts) =>
  mount(app, "/v2/payments/off_session_payments", parts, offSessionPayments);

function mount(app: express.Express, path: string, { operations, lab }: DialectParts, form: RouteForm<Request>): void {
  const charge = idempotent(operations.createCharge, {
    scope: callerOf,
    context: (request: Request) => chargeContext(callerOf(request)),
    form,
  });
  app.use((_request, response, next) => {
    response.locals.sayProblem = sayProblem;
    next();
  });
  const router = express.Router();
  router.post("/", authenticate(lab.isRevoked, { tokenOf: secretKeyOf, refuse }), lab.watch, charge);
  router.use(answerFault);
  app.use(path, router);
}

/** Stripe takes its secret key as a bearer token, or as the user name of Basic authentication. */
function secretKeyOf(request: Request): string | undefined {
  const basic = /^Basic +(\S+)$/i.exec(request.get("authorization") ?? "")?.[1];
  if (basic === undefined) return bearerOf(request);
  return Buffer.from(basic, "base64").toString("utf8").split(":")[0];
}

function refuse(request: Request, response: Response): void {
  sendError(request, response, 401, {
    type: "invalid_request_error",
    message: "A valid API key is required. Nothing was run.",
  });
}

/**
 * For every other path of the API: Stripe's SDKs take an answer without `error`, whatever its status, for what they asked
 * for.
 */
const sayProblem: SayProblem = (response, status, { title }) => {
  if (status >= 500) response.set("Stripe-Should-Retry", "true");
  const type = status >= 500 ? "api_error" : "invalid_request_error";
  sendError(response.req, response, status, { type, message: `${String(title)}.` });
};

/** What an operation threw was rolled back or is kept as unfinished: the same key may try again, and Stripe's SDKs do. */
const answerFault: ErrorRequestHandler = (error: unknown, request, response, next) => {
  if (response.headersSent) return next(error);
  console.error(`unexpected: ${describeError(error)}`);
  response.set("Stripe-Should-Retry", "true");
  sendError(request, response, 500, {
    type: "api_error",
    message: "Something went wrong here. Send the same request again with the same idempotency key.",
  });
};

function sendError(
  request: Request,
  response: Response,
  status: number,
  error: Readonly<Record<string, string>>,
): void {
  const key = request.get("idempotency-key");
  response.set("Request-Id", `req_${randomUUID().replaceAll("-", "").slice(0, 14)}`);
  if (key !== undefined) response.set("Idempotency-Key", key);
  sendJson(response, status, { error });
}

/** Members of a request that are not read here stay in it, and the operation refuses what it does not know. */
const paymentIntents: RouteForm<Request> = {
  input(body) {
    const { amount, payment_method, source, confirm, description, metadata, ...others } = membersOf(body);
    return {
      ...others,
      ...(confirm !== "true" && { confirm: confirm ?? null }),
      amount_minor: wholeAmount(amount),
      source: payment_method ?? source,
    };
  },
  answer(outcome, request) {
    const { kind, charge } = chargeOutcome(outcome);
    const made = {
      ...intentOf(charge, "payment_intent"),
      description: request.member("description") ?? null,
      metadata: request.member("metadata") ?? {},
    };
    if (kind === "succeeded") return json(200, { ...made, status: "succeeded", amount_received: charge.amount_minor });
    return declined(charge, { payment_intent: { ...made, status: "requires_payment_method", amount_received: 0 } });
  },
};

const offSessionPayments: RouteForm<Request> = {
  input(body) {
    const { amount, payment_method, metadata, ...others } = membersOf(body);
    const { value, currency, ...rest } = membersOf(amount);
    return { ...others, ...rest, amount_minor: value, currency, source: payment_method };
  },
  answer(outcome, request) {
    const { kind, charge } = chargeOutcome(outcome);
    if (kind === "declined") return declined(charge, {});
    const { id, created } = intentOf(charge, "v2.payments.off_session_payment");
    return json(200, {
      id: id.replace(/^pi_/, "osp_"),
      object: "v2.payments.off_session_payment",
      amount_requested: { value: charge.amount_minor, currency: charge.currency.toLowerCase() },
      created: new Date(created * 1_000).toISOString(),
      latest_payment_attempt_record: charge.id,
      livemode: false,
      metadata: request.member("metadata") ?? {},
      payment_method: charge.source,
      status: "succeeded",
    });
  },
};

function intentOf(charge: Charge, object: string) {
  return {
    id: charge.id.replace(/^ch_/, "pi_"),
    object,
    amount: charge.amount_minor,
    created: Math.floor(Date.parse(charge.created_at) / 1_000),
    currency: charge.currency.toLowerCase(),
    latest_charge: charge.id,
    livemode: false,
    payment_method: charge.source,
  };
}

function declined({ id }: Charge, more: Readonly<Record<string, unknown>>): OperationResponse {
  const message = "The card was declined.";
  const error = { type: "card_error", code: "card_declined", decline_code: "generic_decline", message, charge: id };
  return json(402, { error: { ...error, ...more } });
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

/** A form's digits, as many as there are. */
function wholeAmount(amount: unknown): unknown {
  return typeof amount === "string" && /^[1-9]\d{0,29}$/.test(amount) ? BigInt(amount) : amount;
}
