import { type OpenApiObject, type OpenApiOptions, type Operation, openApiOperation, problemSchema } from "oncekey";
import type { Payments } from "./payments.ts";

const text = { type: "string" };
const label = { ...text, minLength: 1, maxLength: 255 };
const currency = { ...text, pattern: "^[A-Za-z]{3}$" };
const amount = { type: "integer", minimum: 1, description: "In the currency's minor unit; exact however many digits." };

interface Route {
  readonly operation: Operation;
  readonly summary: string;
  /** The members of the request body. */
  readonly body: OpenApiObject;
  readonly optional?: readonly string[];
  /** Further media types of the request body. */
  readonly forms?: boolean;
  /** The operation's own refusals, by status. */
  readonly refusals?: OpenApiObject;
}

const PROBLEM_REF = "#/components/schemas/IdempotencyProblem";

/** The API's OpenAPI document: what Oncekey adds to each operation comes from the operation itself. */
export function openApiDocument({ createInvoice, createCharge, createRefund }: Payments["operations"]): OpenApiObject {
  const declined = { 402: { description: "The card was declined. The charge is kept, and so is this answer." } };
  const invoice = { customer_id: label, amount_minor: amount, currency, metadata: { type: "object" } };
  return {
    openapi: "3.1.0",
    info: { title: "Oncekey payments", version: "1" },
    security: [{ token: [] }],
    paths: {
      "/v1/invoices": post({
        operation: createInvoice,
        summary: "Create an invoice",
        body: invoice,
        optional: ["metadata"],
        forms: true,
      }),
      "/v1/charges": post({
        operation: createCharge,
        summary: "Charge a card",
        body: { amount_minor: amount, currency, source: label },
        forms: true,
        refusals: declined,
      }),
      "/v1/refunds": post({
        operation: createRefund,
        summary: "Refund a charge",
        body: { charge_id: label, amount_minor: amount },
      }),
    },
    components: {
      schemas: { IdempotencyProblem: problemSchema() },
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
    },
  };
}

function post({ operation, summary, body, optional = [], forms = false, refusals = {} }: Route): OpenApiObject {
  const required = Object.keys(body).filter((name) => !optional.includes(name));
  const schema = { type: "object", required, properties: body, additionalProperties: false };
  const types = ["application/json", ...(forms ? ["application/x-www-form-urlencoded"] : [])];
  const base: OpenApiObject = {
    operationId: operation.name,
    summary,
    requestBody: { required: true, content: Object.fromEntries(types.map((type) => [type, { schema }])) },
    responses: {
      201: { description: "Created; a retry with the same key gets this very answer." },
      401: { description: "The token is missing, unknown or revoked." },
      ...refusals,
    },
  };
  const options: OpenApiOptions = { base, problemRef: PROBLEM_REF };
  return { post: openApiOperation(operation, options) };
}
