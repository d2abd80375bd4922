import { randomUUID } from "node:crypto";
import type { Request, Response } from "express";
import { json, type RouteForm } from "oncekey";
import { idempotent } from "oncekey/express";
import { bearerOf, callerOf } from "../auth.ts";
import { type Charge, chargeContext } from "../operations/charges.ts";
import { sendJson } from "../problem.ts";
import { chargeOutcome } from "./_charge.ts";
import { mountVendor, type Vendor } from "./_vendor.ts";
import type { MountDialect } from "./index.ts";

/**
 * A repeatable action as the Azure guidelines have it: `POST /payments?api-version=…` with `amountMinor`, `currency` and
 * `source`. Beside it `POST /payments/:id:remind`, which is not repeatable and says so to whoever asks for it.
 */
export const mountAzure: MountDialect = (app, parts) => {
  const charge = idempotent(parts.operations.createCharge, {
    scope: callerOf,
    context: (request: Request) => chargeContext(callerOf(request)),
    accepts: ["json"],
    form: payments,
  });
  mountVendor(app, parts, azure, (router) => {
    router.post("/", charge);
    router.post("/:id\\:remind", remind);
  });
};

/** The guidelines: an endpoint that cannot repeat must not let a client believe that it can. */
function remind(request: Request, response: Response): void {
  if (request.get("repeatability-request-id") === undefined) sendJson(response, 202, {});
  else sendError(response, 501, "RepeatabilityNotSupported", "This action is not repeatable. Nothing was run.");
}

const azure: Vendor = {
  path: "/payments",
  tokenOf: bearerOf,
  refuse(_request, response) {
    sendError(response, 401, "Unauthorized", "A valid access token is required. Nothing was run.");
  },
  sendFault(response) {
    const message = "Something went wrong here. Send the same request again with the same headers.";
    sendError(response, 500, "InternalError", message);
  },
};

function sendError(response: Response, status: number, code: string, message: string): void {
  response.set({ "x-ms-error-code": code, "x-ms-request-id": randomUUID() });
  sendJson(response, status, { error: { code, message } });
}

/** Members of a payment that are not read here stay in it, and the operation refuses what it does not know. */
const payments: RouteForm<Request> = {
  input(body) {
    const { amountMinor, ...others } = (body ?? {}) as Readonly<Record<string, unknown>>;
    return { ...others, amount_minor: amountMinor };
  },
  answer(outcome) {
    const { kind, charge } = chargeOutcome(outcome);
    if (kind === "succeeded") return json(201, paymentOf(charge), { location: `/payments/${charge.id}` });
    const error = { code: "CardDeclined", message: "The card was declined.", target: "source" };
    return json(402, { error }, { "x-ms-error-code": error.code });
  },
};

function paymentOf({ id, status, amount_minor, currency, created_at }: Charge): unknown {
  return { id, status, amountMinor: amount_minor, currency, createdAt: created_at };
}
