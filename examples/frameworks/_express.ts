import type { Express, Request, RequestHandler } from "express";
import { idempotent } from "oncekey/express";
import { type Shop, scopeOf, tenantOf } from "./_support.ts";

/** The shop on an Express application: the same code for Express 4 and 5. */
export function shopRoutes(app: Express, shop: Shop): void {
  const scope = (req: Request) => scopeOf(req.headers.authorization);

  app.use(authenticate);

  // Runs the operation and answers. It reads the body itself: every digit and byte as it was sent.
  app.post("/orders", idempotent(shop.createOrder, { scope }));

  // Wraps the handlers that come after it, which find a JSON body in req.body as ever.
  app.post("/refunds", idempotent(shop.createRefund, { scope }), (req, res, next) => {
    shop.refund(req.body.order).then((refund) => res.status(201).json(refund), next);
  });

  app.get("/effects", (_req, res, next) => {
    shop.effects().then((effects) => res.json(effects), next);
  });
}

const authenticate: RequestHandler = (req, res, next) => {
  if (tenantOf(req.headers.authorization) === null) res.status(401).json({ error: "who are you?" });
  else next();
};
