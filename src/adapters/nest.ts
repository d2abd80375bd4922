import { OncekeyError } from "../core/errors.ts";
import type { Operation } from "../engine/operation.ts";
import type { BindingOptions } from "../http/binding.ts";
import { bind } from "../http/gate.ts";
import { writeNodeAnswer } from "../http/node-response.ts";
import { type NestRequest, type NestResponse, throughGate } from "./_nest.ts";
import { interceptWith, type NestModule, type NestModuleOptions, oncekeyModule } from "./_nest-module.ts";

export type { NestRequest } from "./_nest.ts";
export type { NestInstance, NestModule, NestModuleOptions } from "./_nest-module.ts";

/** The module that every application with an {@link Idempotent} method imports once, in its root module. */
export const OncekeyModule = {
  /**
   * `imports: [OncekeyModule.forRoot({ once })]`: a global dynamic module. The application does not start without it, with
   * two of them (`oncekey_config_invalid`), where a method names an operation of another instance
   * (`oncekey_operation_unknown`), or where a decorated method is no HTTP route (`oncekey_config_invalid`).
   */
  forRoot: (options: NestModuleOptions): NestModule => oncekeyModule(options),
};

/** A decorator of controller methods. */
export type NestMethodDecorator = (target: object, name: string | symbol, descriptor: PropertyDescriptor) => void;

/**
 * Binds an operation to a method of a NestJS controller (11 and 12, on Express and on Fastify), after its guards. A
 * `capture` operation wraps pipes, the method, inner interceptors and exception filters and stores what Nest finally
 * writes; a `transaction` or `phases` operation takes the place of the method, whose own code never runs. Raises what
 * `bind` raises; errors of a request reach the exception filters.
 */
export function Idempotent<Request extends NestRequest>(
  operation: Operation,
  options: BindingOptions<Request>,
): NestMethodDecorator {
  const gate = bind(operation, options);
  return interceptWith(operation, (context, next) => {
    if (context.getType() !== "http") throw noHttp(operation);
    const http = context.switchToHttp();
    const call = {
      request: http.getRequest<Request>(),
      response: http.getResponse<NestResponse>(),
      handle: () => next.handle(),
    };
    return throughGate(gate, call, (error, res) => {
      const pass: unknown = http.getNext();
      if (typeof pass === "function") return pass(error);
      operation.engine.settings.onError(error, { operation: operation.name, at: "request" });
      if (!res.headersSent)
        writeNodeAnswer(res, { status: 500, headers: [["content-length", "0"]], body: new Uint8Array() });
    });
  });
}

function noHttp({ name }: Operation): OncekeyError {
  return new OncekeyError(
    "oncekey_config_invalid",
    `Operation ${name} is bound to a method that was not called over HTTP. Nothing was run. Use once.run there, or consume.`,
  );
}
