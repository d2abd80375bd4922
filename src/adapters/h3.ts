import type { Operation } from "../engine/operation.ts";
import type { BindingOptions } from "../http/binding.ts";
import { bind } from "../http/gate.ts";
import { type H3Event, h3Exchange, h3Response, type ToResponse } from "./_h3.ts";
import { answerResponse, captureWeb } from "./_web.ts";

export type { H3Event, ToResponse } from "./_h3.ts";

/** How a `capture` operation is bound to an event handler. */
export interface H3CaptureOptions<Event> extends BindingOptions<Event> {
  /** `toResponse` of `h3`, in Nitro of `nitro/h3`: only h3 itself knows what it makes of a handler's value. */
  readonly toResponse: ToResponse<Event>;
}

/**
 * Binds an operation to an event handler of h3 2 or Nitro 3: `app.post(path, idempotent(operation, options))`. Raises what
 * `bind` raises; what the operation threw reaches h3's own error handling.
 */
export function idempotent<Event extends H3Event>(
  operation: Operation<"transaction"> | Operation<"phases">,
  options: BindingOptions<Event>,
): (event: Event) => Promise<Response>;
/** Wraps an existing event handler with a `capture` operation, whatever it returns or throws. */
export function idempotent<Event extends H3Event>(
  operation: Operation<"capture">,
  options: H3CaptureOptions<Event>,
  handler: (event: Event) => unknown,
): (event: Event) => Promise<unknown>;
export function idempotent<Event extends H3Event>(
  operation: Operation,
  options: BindingOptions<Event> & Partial<H3CaptureOptions<Event>>,
  handler?: (event: Event) => unknown,
): (event: Event) => Promise<unknown> {
  const gate = bind(operation, options);
  return async (event) => {
    const exchange = h3Exchange(event);
    if (handler === undefined || options.toResponse === undefined) return answerResponse(await gate.answer(exchange));
    const { toResponse } = options;
    const captured = await captureWeb(gate, exchange, () => h3Response(event, toResponse, handler));
    if (captured.kind === "pass") return handler(event);
    return captured.kind === "own" ? captured.response : answerResponse(captured.answer);
  };
}
