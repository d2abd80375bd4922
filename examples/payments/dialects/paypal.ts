import { createHash, createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import express, { type Request, type Response } from "express";
import { json, type OperationResponse, type RouteForm } from "oncekey";
import { idempotent } from "oncekey/express";
import { bearerOf, callerOf, TOKENS } from "../auth.ts";
import { type Charge, chargeContext } from "../operations/charges.ts";
import { sendJson } from "../problem.ts";
import { chargeOutcome } from "./_charge.ts";
import { decimalOf, minorOf } from "./_money.ts";
import { mountVendor, type Vendor } from "./_vendor.ts";
import type { DialectParts, MountDialect } from "./index.ts";

/**
 * PayPal's `POST /v1/oauth2/token` (client credentials) and `POST /v2/checkout/orders` for vaulted cards: an order with
 * `payment_source.card.vault_id` is captured at once, and needs its `PayPal-Request-Id`, as at PayPal. Of the order one
 * purchase unit is taken; what else it says is let pass and not looked at.
 */
export const mountPaypal: MountDialect = (app, parts) => {
  app.post("/v1/oauth2/token", express.urlencoded({ extended: false }), (request, response) =>
    sendToken(parts, request, response),
  );
  const order = idempotent(parts.operations.createCharge, {
    scope: callerOf,
    context: (request: Request) => chargeContext(callerOf(request)),
    accepts: ["json"],
    requireKey: true,
    form: orders,
  });
  mountVendor(app, parts, checkout, (router) => router.post("/", order));
};

/** The secret of this example's client ids, which are the API's tokens. A real service looks it up. */
function secretOf(clientId: string): string {
  return `${clientId}_secret`;
}

/** Shows nothing of the client, and is the same in every process and after a restart. */
function accessTokenOf(clientId: string): string {
  return `A21AA${createHmac("sha256", secretOf(clientId)).update("access token").digest("base64url")}`;
}

/** Good until the client is revoked; clients ask anew before it says it ends. */
const TOKEN_SECONDS = 32_400;

function sendToken({ lab }: DialectParts, request: Request, response: Response): void {
  const clientId = provenClient(request);
  const { grant_type } = (request.body ?? {}) as { readonly grant_type?: unknown };
  response.set({ "PayPal-Debug-Id": newDebugId(), "Cache-Control": "no-store" });
  if (clientId === null || lab.isRevoked(clientId)) {
    sendJson(response, 401, { error: "invalid_client", error_description: "Client authentication failed" });
  } else if (grant_type !== "client_credentials") {
    const error_description = "grant_type must be client_credentials";
    sendJson(response, 400, { error: "unsupported_grant_type", error_description });
  } else {
    const token = { access_token: accessTokenOf(clientId), token_type: "Bearer", expires_in: TOKEN_SECONDS };
    sendJson(response, 200, token);
  }
}

/** The client of a request's Basic authentication; `null` where id or secret is wrong. */
function provenClient(request: Request): string | null {
  const basic = /^Basic +(\S+)$/i.exec(request.get("authorization") ?? "")?.[1] ?? "";
  const [clientId = "", secret] = Buffer.from(basic, "base64").toString("utf8").split(":", 2);
  return TOKENS.has(clientId) && isSame(secret ?? "", secretOf(clientId)) ? clientId : null;
}

/** Whose access token a request brings. */
function clientIdOf(request: Request): string | undefined {
  const token = bearerOf(request) ?? "";
  return [...TOKENS.keys()].find((clientId) => isSame(token, accessTokenOf(clientId)));
}

/** Takes as long for a wrong guess as for a nearly right one. */
function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}

const checkout: Vendor = {
  path: "/v2/checkout/orders",
  tokenOf: clientIdOf,
  refuse(_request, response) {
    sendError(response, 401, {
      name: "AUTHENTICATION_FAILURE",
      message: "A valid access token is required. Nothing was run.",
    });
  },
  sendFault(response) {
    sendError(response, 500, {
      name: "INTERNAL_SERVER_ERROR",
      message: "Something went wrong here. Send the same request again with the same PayPal-Request-Id.",
    });
  },
};

function sendError(
  response: Response,
  status: number,
  error: { readonly name: string; readonly message: string },
): void {
  const debug_id = newDebugId();
  response.set("PayPal-Debug-Id", debug_id);
  sendJson(response, status, { ...error, debug_id, details: [], links: [] });
}

const newDebugId = () => randomUUID().replaceAll("-", "").slice(0, 13);

/** As much of an order as is read here; whatever is there instead, the operation refuses. */
interface Order {
  readonly intent?: unknown;
  readonly purchase_units?: readonly {
    readonly amount?: { readonly currency_code?: unknown; readonly value?: unknown };
  }[];
  readonly payment_source?: { readonly card?: { readonly vault_id?: unknown } };
}

const orders: RouteForm<Request> = {
  input(body) {
    const { intent, purchase_units, payment_source } = (body ?? {}) as Order;
    const [unit, ...others] = Array.isArray(purchase_units) ? purchase_units : [];
    return {
      ...(intent !== "CAPTURE" && { intent }),
      ...(others.length > 0 && { purchase_units: others }),
      amount_minor: minorOf(unit?.amount?.value, unit?.amount?.currency_code),
      currency: unit?.amount?.currency_code,
      source: payment_source?.card?.vault_id,
    };
  },
  answer(outcome, request) {
    const { kind, charge } = chargeOutcome(outcome);
    if (kind === "declined") return declined(charge);
    const [unit] = (request.member("purchase_units") ?? []) as readonly { readonly reference_id?: unknown }[];
    return json(201, orderOf(charge, unit?.reference_id ?? "default"));
  },
};

function orderOf(charge: Charge, referenceId: unknown): unknown {
  const id = vendorId(charge);
  const amount = { currency_code: charge.currency, value: decimalOf(charge.amount_minor, charge.currency) };
  const capture = { id: id.split("").reverse().join(""), status: "COMPLETED", amount, final_capture: true };
  return {
    id,
    intent: "CAPTURE",
    status: "COMPLETED",
    purchase_units: [{ reference_id: referenceId, payments: { captures: [capture] } }],
    create_time: charge.created_at,
    links: [{ href: `/v2/checkout/orders/${id}`, rel: "self", method: "GET" }],
  };
}

/** The debug id is the charge's own: a replay has to be what the first answer was. */
function declined(charge: Charge): OperationResponse {
  const details = [{ issue: "INSTRUMENT_DECLINED", description: "The card was declined. Ask for another one." }];
  const message = "The request can be read but not carried out.";
  const debug_id = vendorId(charge).slice(0, 13).toLowerCase();
  return json(422, { name: "UNPROCESSABLE_ENTITY", message, debug_id, details, links: [] });
}

/** Seventeen capitals and digits, as PayPal's ids are. */
function vendorId({ id }: Charge): string {
  return id.replace(/^ch_/, "").slice(0, 17).toUpperCase();
}
