import { createHash } from "node:crypto";
import { inflateRawSync } from "node:zlib";
import { type Cipher, sealedUnder } from "../../../core/cipher.ts";
import type { StoredEntry } from "../../../core/entry.ts";
import { OncekeyError } from "../../../core/errors.ts";
import { contentSummary, decodeContent, type StoredOutcome } from "../../../core/stored-outcome.ts";

/** How an outcome is stored. */
export interface StoredForm {
  /** The id of the key that it is sealed under; `null`: it is stored plainly. */
  readonly keyId: number | null;
  /** What is stored of it in the database, in bytes. */
  readonly storedBytes: number;
  /** Where its body lies in the body store; `null`: in the database. */
  readonly pointer: string | null;
  /** What a captured handler answered before its end became unknown: not what retries will get. */
  readonly provisional: boolean;
}

/** What is told of an opened outcome: never its content. */
export interface OpenedForm extends StoredForm {
  readonly headerNames: readonly string[];
  /** Of the original body, as it was answered. */
  readonly bodyBytes: number;
  /** Hex, of the original body, to compare with what a client says it got. */
  readonly bodySha256: string;
  readonly compressed: boolean;
}

/** What is told of an entry's outcome. */
export type OutcomeSummary =
  | { readonly kind: "none" }
  /** Stored once, its content is no longer kept. */
  | { readonly kind: "gone" }
  | ({ readonly kind: "stored" | "provisional" } & OpenedForm)
  /** Not opened, and why not. */
  | ({ readonly kind: "sealed"; readonly why: string } & StoredForm);

/** What may be told of an entry's outcome, as far as the ring opens it. Raises `idempotency_version_unknown`. */
export function outcomeSummary(entry: StoredEntry, cipher: Cipher): OutcomeSummary {
  if (entry.outcome === null) return { kind: entry.outcomeGone ? "gone" : "none" };
  const provisional = entry.completedAt === null;
  const form = storedForm(entry.outcome, provisional);
  try {
    const opened = openedForm(cipher.open(entry.id, "outcome", entry.outcome.content));
    return { kind: provisional ? "provisional" : "stored", ...form, ...opened };
  } catch (error) {
    return { kind: "sealed", ...form, why: whyOf(error) };
  }
}

function storedForm({ content, pointer }: StoredOutcome, provisional: boolean): StoredForm {
  return { keyId: sealedUnder(content), storedBytes: content.length, pointer, provisional };
}

function openedForm(content: Uint8Array): Omit<OpenedForm, keyof StoredForm> {
  const { headers, bodyBytes, bodySha256, compressed } = contentSummary(content);
  const headerNames = headers.map(([name]) => name);
  return { headerNames, bodyBytes, bodySha256: bodySha256 ?? unpackedSha256(content), compressed };
}

function unpackedSha256(content: Uint8Array): string {
  const decoded = decodeContent(content);
  if ("elsewhere" in decoded) return "";
  const body = inflateRawSync(decoded.body, { maxOutputLength: Math.max(1, decoded.length ?? 0) });
  return createHash("sha256").update(body).digest("hex");
}

function whyOf(error: unknown): string {
  const code = error instanceof OncekeyError ? error.code : "oncekey_store_broken";
  if (code === "idempotency_version_unknown") throw error;
  if (code === "oncekey_config_invalid") return "its key is not given (ONCEKEY_ENCRYPTION_KEYS)";
  return "it cannot be opened: it was changed, belongs to another row, or its key is another one of that id";
}
