import express, { type ErrorRequestHandler, type Express, type Response, type Router } from "express";
import { authenticate, type Credentials } from "../auth.ts";
import { describeError } from "../problem.ts";
import type { DialectParts } from "./index.ts";

/** What a vendor's paths have in common. */
export interface Vendor extends Credentials {
  readonly path: string;
  /** Tells the client, in the vendor's form, that something went wrong here and that it may send the same again. */
  sendFault(response: Response): void;
}

/** Mounts a vendor's paths: who asks, what the lab wants, the routes, and the vendor's form for whatever they throw. */
export function mountVendor(
  app: Express,
  { lab }: DialectParts,
  { path, sendFault, ...credentials }: Vendor,
  routes: (router: Router) => void,
): void {
  const router = express.Router({ mergeParams: true });
  router.use(authenticate(lab.isRevoked, credentials), lab.watch);
  routes(router);
  router.use(answerFault(sendFault));
  app.use(path, router);
}

/** What an operation threw was rolled back or is kept as unfinished: the same key may try again. */
function answerFault(sendFault: Vendor["sendFault"]): ErrorRequestHandler {
  return (error, _request, response, next) => {
    if (response.headersSent) {
      next(error);
      return;
    }
    console.error(`unexpected: ${describeError(error)}`);
    sendFault(response);
  };
}
