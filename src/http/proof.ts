import { formValue, type Pair, parsePairs } from "../core/body/form.ts";
import type { Compare, FingerprintForm, RequestProof } from "../core/fingerprint.ts";
import type { FramedPart } from "../core/framing.ts";
import { type RawInput, type ValidatedInput, validateInput } from "../core/input.ts";
import type { HeaderLine } from "../core/outcome.ts";
import { inputParts, wireDigestParts, wireParts } from "../core/request-form.ts";
import type { Operation } from "../engine/operation.ts";
import type { ReadBody } from "./body.ts";
import type { Exchange } from "./exchange.ts";

/** A request as the engine needs it: how it is compared, and its input once it has to be validated. */
export interface ReadRequest {
  readonly proof: RequestProof;
  input(): Promise<unknown>;
}

/**
 * Brings a read request to what is compared. Digests, and validation, wait until they are needed; what cannot be compared
 * at all (a malformed path or query) raises `idempotency_request_invalid` here, before any claim.
 */
export function readRequest(operation: Operation, exchange: Exchange, body: ReadBody): ReadRequest {
  const { ring } = operation.engine;
  const { definition } = operation;
  const compare: Compare = definition.compare ?? "wire";
  const name = operation.identityName;
  const { path, query } = splitTarget(exchange.target);
  const pairs = query === null ? [] : parsePairs(query);
  const headers = chosenHeaders(exchange, definition.fingerprintHeaders ?? []);
  const wire = wireParts({
    method: exchange.method,
    operation: name,
    path,
    query: pairs,
    omitQuery: definition.ignoreQuery ?? [],
    body: body.form,
    headers,
  });
  const validate = memoized(() =>
    validateInput(definition.input ?? {}, rawInput(exchange, body, pairs), compare === "input"),
  );
  const parts = async (asked: Compare): Promise<FramedPart[]> => {
    if (asked === "none") return [name];
    return asked === "wire" ? wire : inputParts({ operation: name, ...(await validate()) });
  };
  const wireDigest =
    body.wire === null ? null : ring.fingerprint(ring.form("wire"), exactParts(name, exchange, body, headers));
  const fingerprint = async (form: FingerprintForm) => ring.fingerprint(form, await parts(form.compare));
  return { proof: { compare, ring, wireDigest, fingerprint }, input: async () => (await validate()).input };
}

function exactParts(
  operation: string,
  { method, target }: Exchange,
  { contentType, contentEncoding, wire }: ReadBody,
  headers: readonly HeaderLine[],
): FramedPart[] {
  const bytes = wire ?? new Uint8Array();
  return wireDigestParts({ method, operation, target, contentType, contentEncoding, headers, bytes });
}

function rawInput(exchange: Exchange, body: ReadBody, pairs: readonly Pair[]): RawInput {
  return { body: body.form.value(), params: { ...exchange.params }, query: formValue(pairs) };
}

function chosenHeaders(exchange: Exchange, names: readonly string[]): HeaderLine[] {
  const lower = names.map((name) => name.toLowerCase());
  return lower.flatMap((name) => exchange.headerLines(name).map((value): HeaderLine => [name, value]));
}

/** Path and query of a request target; the absolute form that proxies send (RFC 9112 §3.2.2) loses scheme and host. */
function splitTarget(target: string): { readonly path: string; readonly query: string | null } {
  const origin = target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, "").replace(/#.*$/s, "");
  const at = origin.indexOf("?");
  const path = at < 0 ? origin : origin.slice(0, at);
  return { path: path === "" ? "/" : path, query: at < 0 ? null : origin.slice(at + 1) };
}

function memoized(run: () => Promise<ValidatedInput>): () => Promise<ValidatedInput> {
  let result: Promise<ValidatedInput> | undefined;
  return () => (result ??= run());
}
