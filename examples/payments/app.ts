import express, { type Express, type Request, type RequestHandler } from "express";
import { openApiOperation } from "oncekey";
import type { Console } from "oncekey/console";
import { idempotent } from "oncekey/express";
import { authenticate, callerOf } from "./auth.ts";
import { mountCheckout } from "./checkout/mount.ts";
import { mountDialect } from "./dialects/index.ts";
import { rememberForm } from "./form-request.ts";
import type { Lab } from "./lab.ts";
import { openApiDocument } from "./openapi.ts";
import { chargeContext, listCharges } from "./operations/charges.ts";
import { listInvoices } from "./operations/invoices.ts";
import { listRefunds, refundHandler } from "./operations/refunds.ts";
import type { Payments, Queryable } from "./payments.ts";
import { answerError, notFound, sendJson } from "./problem.ts";

/** What an API serves besides its own routes. */
interface AppOptions {
  readonly profile?: string | undefined;
  /** The operators' console. */
  readonly operators?: Console["node"];
}

/** The API: three operations bound to their routes, the lists, and the vendor paths of the profile where it has some. */
export function createApp({ pool, operations }: Payments, lab: Lab, { profile, operators }: AppOptions = {}): Express {
  const { createInvoice, createCharge, createRefund } = operations;
  // Money moves: no request without a key, whatever the dialect allows.
  const binding = { scope: callerOf, requireKey: true } as const;
  const json = { ...binding, accepts: ["json"], allowUnsafeNumbers: true } as const;
  const app = express().disable("x-powered-by");
  if (operators !== undefined) app.use(operators);
  if (lab.routes !== null) app.use("/lab", lab.routes(pool));
  if (takesIdempotencyKey(operations)) mountCheckout(app);
  if (profile !== undefined) mountDialect(app, { operations, lab }, profile);

  app.use("/v1", authenticate(lab.isRevoked), lab.watch, rememberForm);
  app.post("/v1/invoices", idempotent(createInvoice, binding));
  app.post("/v1/charges", idempotent(createCharge, { ...binding, context: chargeContextOf }));
  app.post("/v1/refunds", keepBytes, idempotent(createRefund, json), refundHandler(pool, lab.step));

  app.get(["/v1/invoices", "/v1/invoices/:id"], answerWith(pool, listInvoices));
  app.get(["/v1/charges", "/v1/charges/:id"], answerWith(pool, listCharges));
  app.get(["/v1/refunds", "/v1/refunds/:id"], answerWith(pool, listRefunds));
  app.get("/openapi.json", (_request, response) => void response.json(openApiDocument(operations)));
  app.use(notFound);
  app.use(answerError);
  return app;
}

/** Whether keys travel in the header that the checkout page and the printed lines use; some dialects have another place. */
export function takesIdempotencyKey({ createCharge }: Payments["operations"]): boolean {
  const { key } = openApiOperation(createCharge)["x-idempotency"] as { readonly key: { readonly header?: string } };
  return key.header === "Idempotency-Key";
}

const chargeContextOf = (request: Request) => chargeContext(callerOf(request));

/**
 * The refund's own body parser: keeps the bytes, where Oncekey finds them (`rawBody`) and from which the handler reads
 * amounts as bigint. `express.json` would round them.
 */
const keepBytes = express.raw({
  type: ["json", "+json"],
  limit: "4mb",
  verify: (request, _response, rawBody) => void Object.assign(request, { rawBody }),
});

type List = (db: Queryable, tenant: string, id?: string) => Promise<readonly unknown[]>;

/** The caller's whole list, or the one resource of its tenant. */
function answerWith(db: Queryable, list: List): RequestHandler<{ id?: string }> {
  return async (request, response) => {
    const { id } = request.params;
    const found = await list(db, callerOf(request).tenant, id);
    if (id === undefined) return sendJson(response, 200, { data: found });
    if (found.length === 0) return notFound(request, response);
    sendJson(response, 200, found[0]);
  };
}
