import type { StandardSchema } from "./standard-schema.ts";

/** The parts of a request that an operation takes. */
export type InputPart = "body" | "params" | "query";

/** A schema for each part that is validated; a part without one arrives as it was parsed. */
export type InputSchemas = { readonly [P in InputPart]?: StandardSchema };

/** The validated input that `run` gets, typed part by part. */
export type InputOf<S extends InputSchemas> = {
  readonly [P in InputPart]: S extends { readonly [Q in P]: StandardSchema<infer Output> } ? Output : unknown;
};

/** The unvalidated parts, as parsed from a request or given to `once.run`. */
export interface RawInput {
  readonly body?: unknown;
  readonly params?: unknown;
  readonly query?: unknown;
}
