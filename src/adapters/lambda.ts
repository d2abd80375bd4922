import { OncekeyError } from "../core/errors.ts";
import type { Operation } from "../engine/operation.ts";
import type { BindingOptions } from "../http/binding.ts";
import { bind } from "../http/gate.ts";
import {
  type LambdaEvent,
  type LambdaResult,
  lambdaExchange,
  lambdaResponse,
  lambdaResult,
  ownAnswer,
} from "./_lambda.ts";
import { captureWeb } from "./_web.ts";

export type { LambdaEvent, LambdaResult } from "./_lambda.ts";

/** What is used of the context that AWS Lambda hands to a function. */
export interface LambdaContext {
  getRemainingTimeInMillis(): number;
}

/** How an operation is bound to a function behind API Gateway or a function URL. */
export interface LambdaBindingOptions<Event> extends BindingOptions<Event> {
  /**
   * How long before the function's deadline a run is ended, in milliseconds, so that what is known of it is stored and its
   * answer gets out before the platform stops the process. Default 1,000.
   */
  readonly deadlineMarginMs?: number;
}

const DEADLINE_MARGIN_MS = 1_000;

/**
 * Binds an operation to a Lambda function: the result is its handler. A run, its lease and the wait for a duplicate end
 * before the function's deadline (see {@link LambdaBindingOptions}); with no time left nothing is run, and the answer is
 * 503. Raises what `bind` raises; the handler rejects with what the operation threw.
 */
export function idempotent<Event extends LambdaEvent>(
  operation: Operation<"transaction"> | Operation<"phases">,
  options: LambdaBindingOptions<Event>,
): (event: Event, context: LambdaContext) => Promise<LambdaResult>;
/** Wraps an existing handler that returns a promise of its result; one with a callback or a response stream is refused. */
export function idempotent<Event extends LambdaEvent, Context extends LambdaContext>(
  operation: Operation<"capture">,
  options: LambdaBindingOptions<Event>,
  handler: (event: Event, context: Context) => unknown,
): (event: Event, context: Context) => Promise<LambdaResult>;
export function idempotent<Event extends LambdaEvent>(
  operation: Operation,
  options: LambdaBindingOptions<Event>,
  handler?: (event: Event, context: never) => unknown,
): (event: Event, context: LambdaContext) => Promise<LambdaResult> {
  const gate = bind(operation, options);
  const marginMs = options.deadlineMarginMs ?? DEADLINE_MARGIN_MS;
  if (!(marginMs >= 0)) throw misuse(`${operation.name}: deadlineMarginMs must be 0 or more milliseconds`);
  if (handler !== undefined && handler.length > 2) {
    throw misuse(`${operation.name} wraps a handler with a callback or a response stream, whose end cannot be seen`);
  }
  return async (event, context) => {
    if (typeof context?.getRemainingTimeInMillis !== "function") {
      throw misuse(`${operation.name} was called without Lambda's context, so its deadline is unknown`);
    }
    const exchange = lambdaExchange(event, () => context.getRemainingTimeInMillis() - marginMs);
    if (handler === undefined) return lambdaResult(event, await gate.answer(exchange));
    const existing = async () => handler(event, context as never);
    const captured = await captureWeb(gate, exchange, async () => lambdaResponse(event, await existing()));
    // Where nothing of ours applies the gateway gets what the handler returned, as it is.
    if (captured.kind === "pass") return (await existing()) as LambdaResult;
    return lambdaResult(event, captured.kind === "own" ? await ownAnswer(captured.response) : captured.answer);
  };
}

function misuse(what: string): OncekeyError {
  return new OncekeyError(
    "oncekey_config_invalid",
    `${what}. Nothing was run. Give idempotent() an async handler, and hand event and context on to what it returns.`,
  );
}
