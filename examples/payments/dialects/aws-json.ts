import type { Request } from "express";
import type { Outcome, ProfileRequest } from "oncekey";
import { idempotent } from "oncekey/express";
import { callerOf } from "../auth.ts";
import { type Charge, chargeContext } from "../operations/charges.ts";
import type { Invoice } from "../operations/invoices.ts";
import { awsAnswer, outcomeValue, sendAwsError } from "./_aws-json.ts";
import { mountAws } from "./_aws-route.ts";
import type { DialectParts, MountDialect } from "./index.ts";

/**
 * A service of our own in AWS's JSON protocols: `POST /` with `X-Amz-Target: Payments.CreateInvoice` or
 * `Payments.CreateCharge`, members in AWS's spelling. Access keys are the API's tokens, see `_aws-auth.ts`.
 */
export const mountAwsJson: MountDialect = (app, parts) => {
  const actions = actionsOf(parts);
  const unknown = { status: 400, code: "UnknownOperationException", message: "This API has no such operation." };
  mountAws(app, parts, {
    unsigned: { status: 400, code: "UnrecognizedClientException", message: "The signature is not valid." },
    fault: "InternalServerError",
    sendError: (response, error) => sendAwsError(response, error, error.code, { "x-amzn-errortype": error.code }),
    actionOf: (request) => actions.get(request.get("x-amz-target") ?? "") ?? unknown,
  });
};

function actionsOf({ operations }: DialectParts) {
  const context = (request: Request) => chargeContext(callerOf(request));
  const invoice = { input: invoiceOf, answer: invoiceAnswer };
  const charge = { input: chargeOf, answer: chargeAnswer };
  return new Map([
    ["Payments.CreateInvoice", idempotent(operations.createInvoice, { scope: callerOf, form: invoice })],
    ["Payments.CreateCharge", idempotent(operations.createCharge, { scope: callerOf, context, form: charge })],
  ]);
}

type Members = Readonly<Record<string, unknown>>;

/** What is missing is refused by the operation. */
function invoiceOf(body: unknown): unknown {
  const { CustomerId, AmountMinor, Currency } = (body ?? {}) as Members;
  return { customer_id: CustomerId, amount_minor: AmountMinor, currency: Currency };
}

function chargeOf(body: unknown): unknown {
  const { AmountMinor, Currency, Source } = (body ?? {}) as Members;
  return { amount_minor: AmountMinor, currency: Currency, source: Source };
}

function invoiceAnswer(outcome: Outcome, request: ProfileRequest) {
  const { id, status, amount_minor } = outcomeValue(outcome) as Invoice;
  return awsAnswer(request, 200, { InvoiceId: id, Status: status, AmountMinor: amount_minor });
}

function chargeAnswer(outcome: Outcome, request: ProfileRequest) {
  if (outcome.status >= 400) {
    return awsAnswer(request, 400, { __type: "CardDeclinedException", message: "The card was declined." });
  }
  const { id, status, amount_minor } = outcomeValue(outcome) as Charge;
  return awsAnswer(request, 200, { ChargeId: id, Status: status, AmountMinor: amount_minor });
}
