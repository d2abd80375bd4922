import type { Cipher } from "../core/cipher.ts";
import type { Store } from "../core/store.ts";
import type { Driver } from "../stores/postgres/driver-port.ts";
import type { Ask, OperatorDatabase } from "../stores/postgres/operator/reading.ts";
import type { Asked } from "./exchange.ts";
import type { ConsoleLimits } from "./operator.ts";
import { badRequest, Refusal } from "./refusal.ts";
import type { Series } from "./series.ts";
import type { Who } from "./sessions.ts";
import type { Trail } from "./trail.ts";

/** What the routes work with. */
export interface ConsoleParts {
  readonly database: OperatorDatabase;
  readonly driver: Driver<unknown>;
  readonly store: Store<unknown>;
  readonly cipher: Cipher;
  readonly limits: ConsoleLimits;
  readonly series: Series;
  readonly trail: Trail;
  /** Where the series comes from. */
  readonly source: () => "process" | "metrics" | "none";
}

/** One request to a route. */
export interface Call {
  readonly parts: ConsoleParts;
  readonly asked: Asked;
  readonly who: Who;
  /** What the path names. */
  readonly id: string;
  /** The tenant that bounds everything which is asked; `null`: none does. */
  readonly tenant: string | null;
}

const SMALL_BODY = 65_536;

/** The members of the request's JSON object. Raises 400 and 413. */
export async function bodyOf(asked: Asked): Promise<Readonly<Record<string, unknown>>> {
  const bytes = await bytesOf(asked, SMALL_BODY);
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw badRequest("The body is not JSON in UTF-8");
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw badRequest("The body is not a JSON object");
}

/** The request's body. Raises 413. */
export async function bytesOf(asked: Asked, limitBytes: number): Promise<Uint8Array> {
  const bytes = await asked.readBody(limitBytes);
  if (bytes !== null) return bytes;
  throw new Refusal(413, "console_too_large", `The body is longer than ${limitBytes} bytes. Nothing was changed.`);
}

/** A member that must be text of at most that many characters, if it is there. Raises 400. */
export function textMember(members: Readonly<Record<string, unknown>>, name: string, most: number): string | undefined {
  const value = members[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string" || value.length > most || !value.isWellFormed() || value.includes("\0")) {
    throw badRequest(`"${name}" is not text of at most ${most} characters`);
  }
  return value;
}

const LONGEST_REASON = 2_000;

/** Why something is done, for the audit. Raises 422 where there is none. */
export function reasonOf(members: Readonly<Record<string, unknown>>): string {
  const reason = (textMember(members, "reason", LONGEST_REASON) ?? "").trim();
  if (reason !== "") return reason;
  throw new Refusal(
    422,
    "console_reason_missing",
    `Say why, in 1 to ${LONGEST_REASON} characters: the audit keeps it. Nothing was changed.`,
  );
}

/** Raises 403 where this operator or this console changes nothing. */
export function demandChange({ who }: Call): void {
  if (!who.operator.readOnly) return;
  throw new Refusal(403, "console_read_only", "You may look and not change. Nothing was changed.");
}

/** One look at the database. */
export function look<R>({ parts }: Call, body: (ask: Ask) => Promise<R>): Promise<R> {
  return parts.database.look(body);
}
