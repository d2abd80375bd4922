import { AsyncLocalStorage } from "node:async_hooks";
import type { NextFunction, Request, Response } from "express";
import type { Scope } from "oncekey";

/** What business rows remember of the request that made them. */
export interface Origin {
  readonly tenant: string;
  readonly client: string | null;
  /** The client's key as it was sent, or `null` where no request is there to tell. */
  readonly key: string | null;
}

interface CurrentRequest {
  readonly key: string | null;
  readonly isForm: boolean;
}

const current = new AsyncLocalStorage<CurrentRequest>();

/** Express middleware: remembers the request for everything that runs on its account. */
export function rememberRequest(request: Request, _response: Response, next: NextFunction): void {
  const isForm = typeof request.is("application/x-www-form-urlencoded") === "string";
  current.run({ key: bareKey(request.get("idempotency-key")), isForm }, next);
}

/** Whether the running request sent a form, whose members are all text. */
export function isFormRequest(): boolean {
  return current.getStore()?.isForm ?? false;
}

function requestKey(): string | null {
  return current.getStore()?.key ?? null;
}

/** Who asked, for a row made while the request runs. */
export function originOf(scope: Scope): Origin {
  return { ...scope, key: requestKey() };
}

/** `"abc"` (a structured-field string, RFC 9651) and `abc` are the same key. */
function bareKey(header: string | undefined): string | null {
  if (header === undefined) return null;
  const trimmed = header.trim();
  return /^".*"$/.test(trimmed) ? trimmed.slice(1, -1).replace(/\\(["\\])/g, "$1") : trimmed;
}
