import { AsyncLocalStorage } from "node:async_hooks";
import type { NextFunction, Request, Response } from "express";

const isForm = new AsyncLocalStorage<boolean>();

/** Express middleware: remembers, for everything that runs on the request's account, whether it sent a form. */
export function rememberForm(request: Request, _response: Response, next: NextFunction): void {
  isForm.run(typeof request.is("application/x-www-form-urlencoded") === "string", next);
}

/** Whether the running request sent a form, whose members are all text. */
export function isFormRequest(): boolean {
  return isForm.getStore() ?? false;
}
