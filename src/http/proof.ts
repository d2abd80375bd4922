import { formValue, type Pair } from "../core/body/form.ts";
import { type Compare, type FingerprintForm, type RequestProof, uncomparedContent } from "../core/fingerprint.ts";
import type { FramedPart } from "../core/framing.ts";
import { type RawInput, validateInput } from "../core/input.ts";
import type { HeaderLine } from "../core/outcome.ts";
import { canonicalPath, inputParts, wireDigestParts, wireParts } from "../core/request-form.ts";
import type { Operation } from "../engine/operation.ts";
import type { ReadBody } from "./body.ts";
import type { Exchange } from "./exchange.ts";
import { lazily } from "./lazily.ts";
import { splitTarget } from "./target.ts";

/** A request as the engine needs it: how it is compared, and its input once it has to be validated. */
export interface ReadRequest {
  readonly proof: RequestProof;
  input(): Promise<unknown>;
}

/**
 * Brings a read request to what is compared. Digests, and validation, wait until they are needed; what cannot be compared
 * at all (a malformed path or query) raises `idempotency_request_invalid` here, before any claim.
 */
export function readRequest(
  operation: Operation,
  exchange: Exchange,
  body: ReadBody,
  inputOf: (raw: RawInput) => RawInput = (same) => same,
): ReadRequest {
  const { ring } = operation.engine;
  const { definition } = operation;
  const { compare } = operation.rules;
  const name = operation.identityName;
  const { path, pairs } = splitTarget(exchange.target);
  canonicalPath(path);
  const headers = chosenHeaders(exchange, definition.fingerprintHeaders ?? []);
  const wire = lazily(() =>
    wireParts({
      method: exchange.method,
      operation: name,
      path,
      query: pairs,
      omitQuery: definition.ignoreQuery ?? [],
      body: body.form,
      headers,
    }),
  );
  const validate = lazily(() =>
    validateInput(definition.input ?? {}, inputOf(rawInput(exchange, body, pairs)), compare === "input"),
  );
  const parts = async (asked: Compare): Promise<FramedPart[]> =>
    asked === "input" ? inputParts({ operation: name, ...(await validate()) }) : wire();
  const wireDigest =
    body.wire === null ? null : ring.fingerprint(ring.form("wire"), exactParts(name, exchange, body, headers));
  const made = async (form: FingerprintForm) => {
    const content = ring.fingerprint(form, await parts(form.compare));
    return form.compare === "none" ? uncomparedContent(ring.fingerprint(form, [name]), content) : content;
  };
  const fingerprint = perForm(made);
  return { proof: { compare, ring, wireDigest, fingerprint }, input: async () => (await validate()).input };
}

/**
 * Makes each fingerprint once. A new request of a transaction asks twice: for what is stored, and for what its lock is called,
 * which are the same where there are no secrets.
 */
function perForm(make: (form: FingerprintForm) => Promise<Uint8Array>): (form: FingerprintForm) => Promise<Uint8Array> {
  const known: { readonly form: FingerprintForm; readonly made: Promise<Uint8Array> }[] = [];
  return (form) => {
    const { version, compare, secretId } = form;
    const found = known.find(
      (one) => one.form.compare === compare && one.form.secretId === secretId && one.form.version === version,
    );
    if (found !== undefined) return found.made;
    const made = make(form);
    known.push({ form, made });
    return made;
  };
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
