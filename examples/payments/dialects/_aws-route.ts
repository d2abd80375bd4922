import express, {
  type ErrorRequestHandler,
  type Express,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
} from "express";
import { authenticate } from "../auth.ts";
import { describeError } from "../problem.ts";
import { signedBy } from "./_aws-auth.ts";
import type { DialectParts } from "./index.ts";

/** An error as AWS services tell it. */
export interface AwsError {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

/** What an AWS service looks like from outside: one path, errors of its own form, and something that tells its actions apart. */
interface AwsService {
  /** For whoever brings no signature that is right. */
  readonly unsigned: AwsError;
  /** The code for a fault of ours. */
  readonly fault: string;
  sendError(response: Response, error: AwsError): void;
  /** The handler of the request's action, or what is wrong with the request. */
  actionOf(request: Request): RequestHandler | AwsError;
}

/** Mounts `POST /`: the body is kept as it came, for the signature and for Oncekey; then the caller; then the action. */
export function mountAws(app: Express, { lab }: DialectParts, service: AwsService): void {
  const refuse = (_request: Request, response: Response) => service.sendError(response, service.unsigned);
  const router = express.Router();
  router.post(
    "/",
    keepBytes,
    authenticate(lab.isRevoked, { tokenOf: signedBy, refuse }),
    lab.watch,
    actionWith(service),
  );
  router.use(answerFault(service));
  app.use(router);
}

const keepBytes = express.raw({
  type: () => true,
  // What was signed are the bytes as they travelled.
  inflate: false,
  limit: "1mb",
  verify: (request, _response, rawBody) => void Object.assign(request, { rawBody }),
});

function actionWith(service: AwsService): RequestHandler {
  return (request, response, next) => {
    const action = service.actionOf(request);
    if (typeof action !== "function") return service.sendError(response, action);
    action(request, response, next);
  };
}

/** A body that cannot be read is the client's error. Everything else may be tried again: the SDKs retry a 500. */
function answerFault(service: AwsService): ErrorRequestHandler {
  return (error: unknown, _request: Request, response: Response, next: NextFunction) => {
    if (response.headersSent) return next(error);
    const { status = 500, expose } = error as { status?: number; expose?: boolean };
    if (expose === true && status < 500) {
      const message = "The request body cannot be read. Nothing was run or stored.";
      return service.sendError(response, { status, code: "InvalidParameterValue", message });
    }
    console.error(`unexpected: ${describeError(error)}`);
    const message = "Something went wrong here. Send the same request again.";
    service.sendError(response, { status: 500, code: service.fault, message });
  };
}
