import { createHash, randomUUID } from "node:crypto";
import type { Request, Response } from "express";
import { type OperationResponse, type Outcome, type ProfileRequest, respond } from "oncekey";
import { idempotent } from "oncekey/express";
import { callerOf } from "../auth.ts";
import { parseExact } from "../exact-json.ts";
import { type Charge, chargeContext } from "../operations/charges.ts";
import type { Invoice } from "../operations/invoices.ts";
import { type AwsError, mountAws } from "./_aws-route.ts";
import { leaf, node } from "./_xml.ts";
import type { DialectParts, MountDialect } from "./index.ts";

/** What an instance costs when it is launched, in cents. */
const PRICES: ReadonlyMap<string, bigint> = new Map([
  ["t3.micro", 104n],
  ["m5.large", 960n],
]);

/** What a gibibyte of a volume costs, in cents. */
const GIBIBYTE_PRICE = 8n;

/**
 * Amazon EC2's `POST /`. `RunInstances` charges for its instances (`MaxCount` of them; `KeyName` is taken for the card, such
 * as `tok_declined`), `CreateVolume` makes an invoice. Access keys are the API's tokens, see `_aws-auth.ts`.
 */
export const mountAwsEc2: MountDialect = (app, parts) => {
  const actions = actionsOf(parts);
  mountAws(app, parts, {
    unsigned: { status: 401, code: "AuthFailure", message: "The credentials or the signature are not valid." },
    fault: "InternalError",
    sendError,
    actionOf(request) {
      const name = new URLSearchParams(String(request.body)).get("Action");
      if (name === null) return { status: 400, code: "MissingAction", message: "The request names no Action." };
      return actions.get(name) ?? { status: 400, code: "InvalidAction", message: "This API has no such Action." };
    },
  });
};

function actionsOf({ operations }: DialectParts) {
  const context = (request: Request) => chargeContext(callerOf(request));
  const runInstances = { input: chargeOf, answer: instances };
  const createVolume = { input: invoiceOf, answer: volume };
  return new Map([
    ["RunInstances", idempotent(operations.createCharge, { scope: callerOf, context, form: runInstances })],
    ["CreateVolume", idempotent(operations.createInvoice, { scope: callerOf, form: createVolume })],
  ]);
}

type Parameters = Readonly<Record<string, string | undefined>>;

/** An unknown type of instance, or a count that is none, becomes an amount that the operation refuses. */
function chargeOf(body: unknown): unknown {
  const { InstanceType = "", MaxCount = "", KeyName = "tok_visa" } = body as Parameters;
  const amount = (PRICES.get(InstanceType) ?? 0n) * wholeNumber(MaxCount);
  return { amount_minor: amount, currency: "USD", source: KeyName };
}

function invoiceOf(body: unknown): unknown {
  const { Size = "", AvailabilityZone = "" } = body as Parameters;
  const amount = GIBIBYTE_PRICE * wholeNumber(Size);
  return { customer_id: AvailabilityZone, amount_minor: amount, currency: "USD", metadata: { size: Size } };
}

function wholeNumber(text: string): bigint {
  return /^\d{1,3}$/.test(text) ? BigInt(text) : 0n;
}

function instances({ status, body }: Outcome, request: ProfileRequest): OperationResponse {
  if (status >= 400) return xml(400, errorXml("PaymentDeclined", "The card was declined. Nothing was launched."));
  const { id } = parseExact(new TextDecoder().decode(body)) as Charge;
  const item = (at: number) => [
    leaf("instanceId", idOf("i", id, at)),
    leaf("imageId", textOf(request, "ImageId")),
    node("instanceState", [leaf("code", "0"), leaf("name", "pending")]),
    leaf("amiLaunchIndex", String(at)),
    leaf("instanceType", textOf(request, "InstanceType")),
    node("placement", [leaf("availabilityZone", textOf(request, "Placement.AvailabilityZone"))]),
    leaf("clientToken", textOf(request, "ClientToken")),
  ];
  const launched = Array.from({ length: Number(textOf(request, "MaxCount")) }, (_, at) => node("item", item(at)));
  const reservation = [leaf("reservationId", idOf("r", id)), leaf("ownerId", "000000000000")];
  return xml(200, node("RunInstancesResponse", [...reservation, node("instancesSet", launched)]));
}

function volume({ body }: Outcome, request: ProfileRequest): OperationResponse {
  const { id, created_at } = parseExact(new TextDecoder().decode(body)) as Invoice;
  const elements = [
    leaf("volumeId", idOf("vol", id)),
    leaf("size", textOf(request, "Size")),
    leaf("availabilityZone", textOf(request, "AvailabilityZone")),
    leaf("status", "creating"),
    leaf("createTime", created_at),
  ];
  return xml(200, node("CreateVolumeResponse", elements));
}

function textOf(request: ProfileRequest, name: string): string {
  const value = request.member(name);
  return typeof value === "string" ? value : "";
}

/** An id of the vendor's form, made of ours: each replay has the same. */
function idOf(prefix: string, id: string, at = 0): string {
  return `${prefix}-${createHash("sha256").update(`${id}/${at}`).digest("hex").slice(0, 17)}`;
}

const XML_TYPE = "text/xml;charset=UTF-8";
const PROLOGUE = '<?xml version="1.0" encoding="UTF-8"?>\n';

function xml(status: number, document: string): OperationResponse {
  return respond(status, PROLOGUE + document, { "content-type": XML_TYPE });
}

/** `requestId`: of this attempt; what is stored and replayed names it in the header alone. */
function errorXml(code: string, message: string, requestId?: string): string {
  const errors = node("Errors", [node("Error", [leaf("Code", code), leaf("Message", message)])]);
  return node("Response", requestId === undefined ? [errors] : [errors, leaf("RequestID", requestId)]);
}

function sendError(response: Response, { status, code, message }: AwsError): void {
  const requestId = randomUUID();
  const document = PROLOGUE + errorXml(code, message, requestId);
  response.status(status).set("x-amzn-requestid", requestId).type(XML_TYPE).send(document);
}
