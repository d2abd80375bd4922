import type { Express, NextFunction, Request, Response } from "express";
import { pageScript } from "./script.ts";
import { actForSession, openSession } from "./session.ts";

/** Nothing but this origin's own files; no script or style inside of the page. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/**
 * The checkout page and its files, and the page's session on the charge route. Before the API's authentication: the page is
 * public, and its requests get their token from it.
 */
export function mountCheckout(app: Express): void {
  app.use("/checkout", protect);
  app.get("/checkout", openSession, sendPageFile("checkout.html"));
  app.get("/checkout/checkout.css", sendPageFile("checkout.css"));
  app.get("/checkout/checkout.js", async (_request, response) => {
    response.type("text/javascript").send(await pageScript());
  });
  app.post("/v1/charges", actForSession);
}

function protect(_request: Request, response: Response, next: NextFunction): void {
  response.set({
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
  });
  next();
}

const sendPageFile = (name: string) => (_request: Request, response: Response) =>
  response.sendFile(name, { root: import.meta.dirname, cacheControl: false });
