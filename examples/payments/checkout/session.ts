import { createHmac, timingSafeEqual } from "node:crypto";
import type { NextFunction, Request, Response } from "express";
import { TOKENS } from "../auth.ts";

/**
 * The page's session: a cookie that scripts cannot read and other sites' requests do not carry stands for the demo customer.
 * The API's token never reaches the browser. The same after a restart of the server, so that a payment that was kept in
 * between goes on; a shop would look its customer's session up here.
 */
const COOKIE = "checkout_session";
const [TOKEN = ""] = TOKENS.keys();
const SESSION = createHmac("sha256", TOKEN).update(COOKIE).digest("base64url");

/** Express middleware: whoever opens the page gets the demo customer's session. */
export function openSession(_request: Request, response: Response, next: NextFunction): void {
  response.cookie(COOKIE, SESSION, { httpOnly: true, sameSite: "strict", path: "/v1/charges" });
  next();
}

/** Express middleware: a request of the page acts with the customer's token, as every other one must bring it along. */
export function actForSession(request: Request, _response: Response, next: NextFunction): void {
  if (request.get("authorization") === undefined && isSession(cookieOf(request))) {
    request.headers.authorization = `Bearer ${TOKEN}`;
  }
  next();
}

function cookieOf(request: Request): string | undefined {
  return new RegExp(`(?:^|;\\s*)${COOKIE}=([^;]*)`).exec(request.get("cookie") ?? "")?.[1];
}

function isSession(value: string | undefined): boolean {
  const [given, expected] = [Buffer.from(value ?? ""), Buffer.from(SESSION)];
  return given.length === expected.length && timingSafeEqual(given, expected);
}
