import type { HeaderLine } from "./answer.ts";
import type { Dialect } from "./dialects.ts";
import type { JsonPath } from "./json-text.ts";

/** Another address with a body of its own. */
export interface Address {
  readonly url: URL;
  /** `null`: the operation's own body, or none where it is no operation. */
  readonly body: Buffer | null;
}

/** What the kit was told about the API: one operation, a request that it accepts, and what else may be asked. */
export interface Target {
  readonly url: URL;
  readonly method: string;
  /** Lines of every request, credentials among them. */
  readonly headers: readonly HeaderLine[];
  readonly body: Buffer | null;
  readonly contentType: string | null;
  readonly dialect: Dialect;
  /** Longest time for one answer, and for a retry to become final. */
  readonly timeoutMs: number;
  /** Where executions can be counted: a number, or a list, at `path` in the JSON that GET answers. */
  readonly count: { readonly url: URL; readonly path: JsonPath } | null;
  /** Credentials of another tenant; they replace lines of the same names. */
  readonly otherHeaders: readonly HeaderLine[] | null;
  /** Another operation that takes keys. */
  readonly otherOperation: Address | null;
  /** Another request for the same operation; `null`: one member of `body` is changed. */
  readonly otherBody: Buffer | null;
  /** A request that the business refuses (400 to 499) after the key was taken. */
  readonly refusedBody: Buffer | null;
  /** Which number of the body may go past 2^53; `null`: the first whole one. */
  readonly numberPath: JsonPath | null;
  /** POSTs that take the credentials' rights away and give them back. */
  readonly revocation: { readonly revoke: Address; readonly restore: Address } | null;
  /** Credentials that were good once; they replace lines of the same names. */
  readonly revokedHeaders: readonly HeaderLine[] | null;
  /** Lines that say that a request was first sent before all that is kept. */
  readonly lateHeaders: readonly HeaderLine[];
  /** Lines that make the operation slow, so that requests overlap for certain. */
  readonly slowHeaders: readonly HeaderLine[];
  /** How long outcomes are kept. */
  readonly retentionMs: number | null;
}

const CREDENTIALS = /^(?:authorization|proxy-authorization|cookie|(?:x-)?api-key|x-auth-token|x-access-token)$/i;

/** Names of the lines by which a caller is known: what the user replaces for others, and what is commonly so named. */
export function credentialNames({ headers, otherHeaders, revokedHeaders }: Target): string[] {
  const replaced = [...(otherHeaders ?? []), ...(revokedHeaders ?? [])].map(([name]) => name.toLowerCase());
  const names = headers.map(([name]) => name.toLowerCase());
  return [...new Set(names.filter((name) => CREDENTIALS.test(name) || replaced.includes(name)))];
}

/** The lines with those of the same names replaced. */
export function replacing(lines: readonly HeaderLine[], by: readonly HeaderLine[]): HeaderLine[] {
  const names = by.map(([name]) => name.toLowerCase());
  return [...lines.filter(([name]) => !names.includes(name.toLowerCase())), ...by];
}

/** The lines without those of these names (lower case). */
export function without(lines: readonly HeaderLine[], names: readonly string[]): HeaderLine[] {
  return lines.filter(([name]) => !names.includes(name.toLowerCase()));
}
