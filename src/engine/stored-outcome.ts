import type { KeptOutcome } from "../core/completion.ts";
import { type AnyOutcome, bytesOf, type OutcomeBody } from "../core/outcome.ts";
import { StoreFailure } from "../core/store.ts";
import {
  decodeContent,
  encodePacked,
  type InRowContent,
  type StoredContent,
  type StoredOutcome,
} from "../core/stored-outcome.ts";
import { compressed, decompressed, mayCompress, pays } from "./compress.ts";
import type { EngineContext } from "./context.ts";
import type { Operation } from "./operation.ts";
import { getBody, putBody } from "./stored-body.ts";

/**
 * An outcome in the form that stores keep, for the entry `id`. A body that is too long to be kept gives `content: null`:
 * the outcome then says that the operation was carried out, and no more. Raises {@link BodyNotStored} where the
 * `BodyStore` cannot take it, and the store's failures.
 */
export async function storeOutcome(
  context: EngineContext,
  operation: Operation,
  id: Uint8Array,
  outcome: AnyOutcome,
): Promise<KeptOutcome> {
  const { bodyStore } = context.settings;
  if (bodyStore === null || outcome.body.length <= rowLimit(context, operation)) {
    return storeInRow(context, operation, id, outcome);
  }
  const { pointer, content } = await putBody(context, bodyStore, operation, id, outcome);
  return { status: outcome.status, content: sealed(context, id, content), pointer };
}

/** The same, with the body in the row or not at all. */
export async function storeInRow(
  context: EngineContext,
  operation: Operation,
  id: Uint8Array,
  outcome: AnyOutcome,
): Promise<KeptOutcome> {
  const { status, body } = outcome;
  const mostBytes = rowLimit(context, operation);
  if (body.length > mostBytes) {
    context.settings.onError(tooLong(body.length, mostBytes), { operation: operation.name, at: "store the outcome" });
    return withoutContent(status);
  }
  return { status, content: sealed(context, id, await inRow(context, outcome)), pointer: null };
}

/** What is kept of an outcome whose body is not. */
export function withoutContent(status: number): KeptOutcome {
  return { status, content: null, pointer: null };
}

/**
 * The outcome of a stored form, or `null` where its body is no longer kept. A long body must be released by whoever gets
 * it. Raises `oncekey_store_broken` for bytes that were changed or belong to another entry, `idempotency_version_unknown`
 * for an encoding of a newer release, `oncekey_config_invalid` for a key that is not in the ring, and a `StoreFailure` of
 * kind `unavailable` where the `BodyStore` cannot be reached.
 */
export async function openOutcome(
  context: EngineContext,
  id: Uint8Array,
  { status, content, pointer }: StoredOutcome,
): Promise<AnyOutcome | null> {
  const opened = decodeContent(context.cipher.open(id, "outcome", content));
  const body = await openedBody(context, id, pointer, opened);
  return body === null ? null : { status, headers: opened.headers, body };
}

/**
 * The answer that was given before an outcome became unknown; `null` where there is none, and where this process cannot
 * read it (a newer encoding, a missing key, a damaged row): what became of the request can still be found out.
 */
export async function openProvisional(
  context: EngineContext,
  id: Uint8Array,
  stored: StoredOutcome | null,
): Promise<AnyOutcome | null> {
  if (stored === null) return null;
  return openOutcome(context, id, stored).catch((error: unknown) => {
    context.settings.onError(error, { operation: "replay", at: "a provisional answer" });
    return null;
  });
}

function rowLimit({ settings }: EngineContext, { definition }: Operation): number {
  const { bodyStore, maxStoredBodyBytes, bodyThresholdBytes } = settings;
  const mostBytes = definition.maxStoredBodyBytes ?? maxStoredBodyBytes;
  return bodyStore === null ? mostBytes : Math.min(mostBytes, bodyThresholdBytes);
}

function sealed({ cipher }: EngineContext, id: Uint8Array, content: StoredContent): Uint8Array {
  return cipher.seal(id, "outcome", encodePacked(content));
}

async function inRow({ settings }: EngineContext, outcome: AnyOutcome): Promise<InRowContent> {
  const { headers } = outcome;
  const body = await bytesOf(outcome.body);
  if (!settings.compressBodies || !mayCompress(headers, body.length)) return { headers, body, length: null };
  const packed = await compressed(body);
  return pays(body.length, packed.length)
    ? { headers, body: packed, length: body.length }
    : { headers, body, length: null };
}

async function openedBody(
  context: EngineContext,
  id: Uint8Array,
  pointer: string | null,
  content: StoredContent,
): Promise<OutcomeBody | null> {
  if (!("elsewhere" in content)) {
    return content.length === null ? content.body : decompressed(content.body, content.length);
  }
  const { bodyStore } = context.settings;
  const told = (error: unknown) => context.settings.onError(error, { operation: "replay", at: "read a stored body" });
  try {
    if (bodyStore === null)
      throw new StoreFailure("unavailable", "A body lies in a body store that this process lacks.");
    const body = pointer === null ? null : await getBody(context, bodyStore, id, pointer, content);
    if (body === null) told(bodyGone());
    return body;
  } catch (error) {
    if (error instanceof StoreFailure) told(error);
    throw error;
  }
}

function tooLong(length: number, mostBytes: number): Error {
  return new Error(
    `The body of an answer has ${length} bytes and ${mostBytes} are kept. It was answered once and is not kept: retries hear that the operation was carried out. Raise maxStoredBodyBytes, or give createOncekey a bodyStore.`,
  );
}

function bodyGone(): Error {
  return new Error(
    "A stored body is not in the body store any more. Its entry was left as it is: retries hear that the operation was carried out. Restore the body, or find out who deletes there.",
  );
}
