import type { Operation } from "../engine/operation.ts";
import { givenOutcome } from "./_call-values.ts";
import { type CallBindingOptions, checkCallBinding, runCall } from "./_direct.ts";
import * as gql from "./_graphql.ts";

export type { ValueTransformer } from "./_call-values.ts";
export type { CallBindingOptions } from "./_direct.ts";
export type { GraphqlCall, GraphqlInfo } from "./_graphql.ts";

/** SDL of the directive that carries a key on a field of a document: `createPayment(…) @idempotent(key: $key) { id }`. */
export const idempotentDirective = "directive @idempotent(key: String!) on FIELD";

/** How an operation is bound to a field. */
export interface GraphqlBindingOptions<Call> extends CallBindingOptions<Call> {
  /** What the field's payload calls its errors, in dialects where refusals are part of it. Default: the profile's. */
  readonly errorsMember?: string;
}

/** A field's resolver, as graphql-js calls it. */
export type GraphqlResolver<Source, Args, Context> = (
  source: Source,
  args: Args,
  context: Context,
  info: never,
) => unknown;

/** A resolver that {@link idempotentResolver} makes. */
export type IdempotentResolver<Source, Args, Context> = (
  source: Source,
  args: Args,
  context: Context,
  info: gql.GraphqlInfo,
) => Promise<unknown>;

/**
 * A mutation field's resolver that runs an operation: `Mutation: { createInvoice: idempotentResolver(operation, options) }`.
 * The operation gets the field's arguments as its `body`, without the key. The key is the argument `idempotencyKey` or the
 * directive `@idempotent(key:)` on the field ({@link idempotentDirective}), unless `key` says otherwise. What is stored is
 * the field's value, not what a document selected of it: a retry may select other members. Refusals reach clients as
 * GraphQL errors with `extensions` code, retry, state and http.status; with the profile `shopify` those about the key are
 * `userErrors` of the payload. Raises `oncekey_scope_invalid`, `oncekey_operation_unknown`.
 */
export function idempotentResolver<Source, Args extends object, Context>(
  operation: Operation<"transaction"> | Operation<"phases">,
  options: GraphqlBindingOptions<gql.GraphqlCall<Source, Args, Context>>,
): IdempotentResolver<Source, Args, Context>;
/** Wraps an existing resolver with a `capture` operation. Its value must be plain data, Date, bigint or bytes. */
export function idempotentResolver<Source, Args extends object, Context>(
  operation: Operation<"capture">,
  options: GraphqlBindingOptions<gql.GraphqlCall<Source, Args, Context>>,
  resolver: GraphqlResolver<Source, Args, Context>,
): IdempotentResolver<Source, Args, Context>;
export function idempotentResolver<Source, Args extends object, Context>(
  operation: Operation,
  options: GraphqlBindingOptions<gql.GraphqlCall<Source, Args, Context>>,
  resolver?: GraphqlResolver<Source, Args, Context>,
): IdempotentResolver<Source, Args, Context> {
  checkCallBinding(operation, options);
  gql.checkResolver(operation, resolver);
  return async (source, args, context, info) => {
    const call = { source, args, context, info };
    const existing = () => resolver?.(source, args, context, info as never);
    let own: unknown;
    const handler = async () => {
      const { given, error } = await gql.givenBy(operation, existing);
      own = error;
      return givenOutcome(given, options.transformer);
    };
    const result = await runCall(operation, options, call, async () => ({
      ...(await gql.askedField(operation, options, call)),
      ...(resolver !== undefined && { target: `${info.parentType.name}.${info.fieldName}`, handler }),
    }));
    if (result.kind === "pass") return existing();
    if (result.kind === "problem") return gql.problemValue(operation, info, result.problem, options.errorsMember);
    return gql.fieldValue(info, result, own);
  };
}
