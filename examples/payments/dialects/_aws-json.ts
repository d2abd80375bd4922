import { randomUUID } from "node:crypto";
import type { Response } from "express";
import { json, type OperationResponse, type Outcome, type ProfileRequest } from "oncekey";
import { parseExact } from "../exact-json.ts";
import type { AwsError } from "./_aws-route.ts";

/** An answer in the version of the protocol that the request is in. */
export function awsAnswer(request: ProfileRequest, status: number, value: unknown): OperationResponse {
  const [type = "application/x-amz-json-1.0"] = request.headerLines("content-type");
  return json(status, value, { "content-type": type });
}

/** What an operation answered, as a value. */
export function outcomeValue({ body }: Outcome): unknown {
  return parseExact(new TextDecoder().decode(body));
}

/** Sends an error of AWS's JSON protocols. `headers`: where clients look for its name, beside `__type`. */
export function sendAwsError(
  response: Response,
  { status, message }: AwsError,
  type: string,
  headers: Readonly<Record<string, string>>,
): void {
  response
    .status(status)
    .set({ "x-amzn-requestid": randomUUID(), ...headers })
    .type("application/x-amz-json-1.0")
    .send(JSON.stringify({ __type: type, message }));
}
