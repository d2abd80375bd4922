import { randomUUID } from "node:crypto";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import express, { type NextFunction, type Request, type RequestHandler, type Response } from "express";
import type { Middleware } from "../../peers/middlewares/middlewares.ts";
import { atEnd } from "../../support/postgres.ts";

const TENANTS: Readonly<Record<string, string>> = { "Bearer sk_acme": "acme", "Bearer sk_globex": "globex" };

/** An Express application around a middleware, with the paths, tokens and headers of the naive server. Its URL. */
export async function middlewareShop(middleware: Middleware): Promise<string> {
  const revoked = new Set<string>();
  const made = new Map<string, string[]>();
  const app = express().disable("x-powered-by");
  app.use(express.json({ strict: false }));
  app.post(
    "/revoke",
    (request, response) => void response.status(revoked.add(`Bearer ${request.body}`) ? 204 : 500).end(),
  );
  app.post("/restore", (request, response) => {
    revoked.delete(`Bearer ${request.body}`);
    response.status(204).end();
  });
  app.use(authenticate(revoked));
  for (const path of ["/invoices", "/refunds"]) {
    const listOf = (response: Response) => made.get(`${path} ${response.locals.tenant}`) ?? [];
    app.post(path, middleware.handler, async (request, response) => {
      if (middleware.isAnswered(request)) return;
      await sleep(Number(request.get("x-delay-ms") ?? "0"));
      if (request.body.amount_minor === 13)
        return void response.status(402).json({ code: "declined", id: randomUUID() });
      const id = randomUUID();
      made.set(`${path} ${response.locals.tenant}`, [...listOf(response), id]);
      response
        .status(201)
        .location(`${path}/${id}`)
        .cookie("seen", id)
        .json({ id, amount_minor: request.body.amount_minor });
    });
    app.get(path, (_request, response) => void response.json({ data: listOf(response) }));
  }
  app.use(answerError);
  const server = app.listen(0, "127.0.0.1");
  await new Promise((done) => server.once("listening", done));
  atEnd(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
    await middleware.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function authenticate(revoked: ReadonlySet<string>): RequestHandler {
  return (request, response, next) => {
    const token = request.get("authorization") ?? "";
    const tenant = revoked.has(token) ? undefined : TENANTS[token];
    if (tenant === undefined) return void response.status(401).json({ code: "unauthenticated" });
    response.locals.tenant = tenant;
    next();
  };
}

/** Express's own, without its stack on standard error: the middleware says by the status what it means. */
function answerError(_error: unknown, _request: Request, response: Response, _next: NextFunction): void {
  if (response.headersSent) return;
  response.status(response.statusCode >= 400 ? response.statusCode : 500).json({ code: "error" });
}
