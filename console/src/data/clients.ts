import { type Asking, ask } from "./request.ts";

/** A client that uses its keys wrongly. */
export interface Finding {
  readonly kind: "key_per_attempt" | "key_from_payload" | "mismatches";
  readonly tenant: string;
  readonly client: string | null;
  readonly operation: string;
  readonly count: number;
  readonly firstAt: string;
  readonly lastAt: string;
  readonly entryIds: readonly string[];
  readonly advice: string;
}

/** What was found in a sample. */
export interface Findings {
  readonly findings: readonly Finding[];
  readonly sampled: { readonly entries: number; readonly fromAt: string | null; readonly toAt: string | null };
}

/** Raises `RequestError`. */
export const clientFindings = (asking: Asking) => ask<Findings>("clients", asking);
