import { randomUUID } from "node:crypto";
import { formValue } from "../core/body/form.ts";
import type { ReadBody } from "./body.ts";
import type { Exchange } from "./exchange.ts";
import { lazily } from "./lazily.ts";
import { splitTarget } from "./target.ts";

/** What an answer may say of its request. */
export interface Asked {
  readonly method: string;
  /** Path and query, as the client sent them. */
  readonly target: string;
  /** The client's key; `null` while it is not read, or where there is none. */
  readonly key: string | null;
  /** Of this attempt alone: a random UUID, for the request ids that dialects show. */
  readonly requestId: string;
}

/** For answers that no HTTP request of their own was asked for. */
export const unasked: Asked = { method: "", target: "", key: null, requestId: "" };

/** A request as the rules of a dialect see it, its body read. */
export interface ProfileRequest {
  readonly method: string;
  readonly target: string;
  headerLines(name: string): readonly string[];
  /** A member of the body (JSON or form), or else of the query; `undefined` where neither has it. */
  member(name: string): unknown;
  /** The body without its content coding; `null` where an earlier parser consumed it. */
  readonly bytes: Uint8Array | null;
}

/** A request whose members can be told apart by where they stand. */
export interface KeyedRequest extends ProfileRequest {
  /** A member as the body has it and as the query has it; without what is not there or `null`. */
  everyMember(name: string): readonly unknown[];
}

/** What is asked, before the key is read. */
export function askedBy({ method, target }: Exchange): Asked {
  return { method, target, key: null, requestId: randomUUID() };
}

/** The request for the rules of a dialect. Body and query are parsed when a rule asks for them. */
export function profileRequest(exchange: Exchange, body: ReadBody): KeyedRequest {
  const { method, target } = exchange;
  const value = lazily(() => body.form.value());
  const query = lazily(() => formValue(splitTarget(target).pairs));
  return {
    method,
    target,
    headerLines: (name) => exchange.headerLines(name),
    member(name) {
      const own = memberOf(value(), name);
      return own === undefined ? memberOf(query(), name) : own;
    },
    everyMember: (name) =>
      [value(), query()].map((part) => memberOf(part, name)).filter((member) => (member ?? null) !== null),
    bytes: body.bytes,
  };
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}
