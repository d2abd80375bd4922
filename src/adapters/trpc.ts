import type { Operation } from "../engine/operation.ts";
import { givenOutcome } from "./_call-values.ts";
import { type CallBindingOptions, checkCallBinding, runCall } from "./_direct.ts";
import * as rpc from "./_trpc.ts";

export type { ValueTransformer } from "./_call-values.ts";
export type { CallBindingOptions, CallProblem } from "./_direct.ts";
export type { TrpcCall, TrpcErrorData, TrpcMiddlewareCall } from "./_trpc.ts";

/** How a `transaction` or `phases` operation is bound to a mutation. */
export interface TrpcMutationOptions<Context, Input, Output> extends CallBindingOptions<rpc.TrpcCall<Context, Input>> {
  /** Makes the mutation's result of the operation's JSON answer, such as a schema's `parse`. Default: the answer as it is. */
  read?(answer: unknown): Output;
}

/**
 * A middleware that makes an existing mutation replayable: `t.procedure.input(…).use(idempotent(operation, options))`. What
 * comes before it (authentication, validation) runs on every attempt, what comes after it once. The key is the header
 * `idempotency-key` of the request in `ctx`, unless `key` says otherwise; compared is the raw input. Errors of ours
 * and 4xx errors of the resolver reach clients as tRPC errors. Raises `oncekey_scope_invalid`, `oncekey_operation_unknown`.
 */
export function idempotent<Context>(
  operation: Operation<"capture">,
  options: CallBindingOptions<rpc.TrpcCall<Context, unknown>>,
): <Result>(call: rpc.TrpcMiddlewareCall<Context, Result>) => Promise<Result> {
  checkCallBinding(operation, options);
  return async <Result>(call: rpc.TrpcMiddlewareCall<Context, Result>) => {
    let own: rpc.MiddlewareResult | undefined;
    const handler = async () => {
      own = (await call.next()) as rpc.MiddlewareResult;
      return givenOutcome(rpc.givenBy(operation, own), options.transformer);
    };
    const result = await runCall(operation, options, call, async () => ({
      ...(await rpc.trpcKeys(operation, options, call)),
      body: options.input === undefined ? await call.getRawInput() : options.input(call),
      target: call.path,
      handler,
    }));
    return result.kind === "pass" ? call.next() : (rpc.middlewareResult(result, own) as Result);
  };
}

/**
 * A mutation's resolver that runs an operation: `t.procedure.input(…).mutation(idempotentMutation(operation, options))`.
 * The operation gets the mutation's input as its `body`. Its rejections reach clients as tRPC errors by their status.
 * Keys, errors and what it raises are as for {@link idempotent}.
 */
export function idempotentMutation<Context, Input, Output = unknown>(
  operation: Operation<"transaction"> | Operation<"phases">,
  options: TrpcMutationOptions<Context, Input, Output>,
): (call: rpc.TrpcCall<Context, Input>) => Promise<Output> {
  checkCallBinding(operation, options);
  return async (call) => {
    const result = await runCall(operation, options, call, async () => ({
      ...(await rpc.trpcKeys(operation, options, call)),
      body: options.input === undefined ? call.input : options.input(call),
    }));
    const value = rpc.answerValue(result);
    return options.read === undefined ? (value as Output) : options.read(value);
  };
}

/**
 * An error formatter that adds `data.idempotency` (code, retry, state, retryAfterMs) to refusals of ours and `data.problem`
 * to rejections of an operation: `initTRPC.create({ errorFormatter: idempotencyErrors })`. Without it clients see tRPC's
 * code and the message only.
 */
export function idempotencyErrors<Shape extends { readonly data: object }>({
  shape,
  error,
}: {
  readonly shape: Shape;
  readonly error: unknown;
}): Shape & { readonly data: rpc.TrpcErrorData } {
  return { ...shape, data: { ...shape.data, ...rpc.TrpcCallError.dataOf(error) } };
}
