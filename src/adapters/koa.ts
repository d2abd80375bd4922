import type { Operation } from "../engine/operation.ts";
import type { BindingOptions } from "../http/binding.ts";
import { bind, type Gate } from "../http/gate.ts";
import { giveKoa, type KoaContext, koaExchange, pinKoa } from "./_koa.ts";
import { captureNode } from "./_node.ts";

export type { KoaContext } from "./_koa.ts";

/** The rest of the middleware. */
export type KoaNext = () => Promise<unknown>;

/**
 * Binds an operation to Koa: `router.post(path, authenticate, idempotent(operation, options))`, or `app.use`. A `capture`
 * operation wraps the middleware that comes after it and stores what Koa finally writes, after all middleware, also outer
 * one. Raises what `bind` raises; errors reach outer middleware, or Koa's own error handling where that is through.
 */
export function idempotent<Context extends KoaContext>(
  operation: Operation,
  options: BindingOptions<Context>,
): (context: Context, next: KoaNext) => Promise<void> {
  const gate = bind(operation, options);
  return async (context, next) => {
    if (operation.runKind === "capture") return captureKoa(gate, context, next);
    giveKoa(context, await gate.answer(koaExchange(context)));
  };
}

/**
 * Settles as soon as what comes after us has: Koa writes only when we have returned, so the wait for the recorded answer
 * goes on beside. What fails then has no middleware around it any more.
 */
function captureKoa<Context extends KoaContext>(gate: Gate<Context>, context: Context, next: KoaNext): Promise<void> {
  return new Promise((resolve, reject) => {
    let waits = true;
    const settle =
      <Value>(how: (value: Value) => void) =>
      (value: Value) => {
        waits = false;
        how(value);
      };
    const [done, fail] = [settle(() => resolve()), settle(reject)];
    const broken = (error: unknown) => {
      fail(error);
      // Nobody can end an answer of which a part was written; Koa would leave it open for ever.
      if (context.res.headersSent) context.res.destroy();
    };
    captureNode(gate, koaExchange(context), context.res, {
      next: () => void next().then(done, broken),
      answer: (answer) => {
        pinKoa(context, answer);
        done(undefined);
      },
    }).catch((error: Error) => (waits ? fail(error) : context.onerror(error)));
  });
}
