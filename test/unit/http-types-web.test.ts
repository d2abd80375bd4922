import type {
  APIGatewayProxyEvent,
  APIGatewayProxyEventV2WithJWTAuthorizer,
  APIGatewayProxyHandler,
  APIGatewayProxyHandlerV2,
  APIGatewayProxyHandlerV2WithJWTAuthorizer,
  APIGatewayProxyResult,
  Context,
  LambdaFunctionURLHandler,
} from "aws-lambda";
import { defineHandler, H3, type H3Event, toResponse } from "h3";
import { createOncekey, ok } from "oncekey";
import { idempotent as bindH3 } from "oncekey/h3";
import { idempotent as bindLambda, type LambdaContext } from "oncekey/lambda";
import { memoryStore } from "oncekey/memory";
import { idempotent as bindNext, type RouteContext } from "oncekey/next";
import { describe, expect, expectTypeOf, it } from "vitest";

const once = createOncekey({ store: memoryStore() });
const write = once.transaction({ name: "types.write", version: 1, run: async () => ok({}) });
const steps = once.phases({ name: "types.steps", version: 1, run: (op) => op.complete(async () => ok({})) });
const wrap = once.capture({ name: "types.wrap", version: 1 });
const scope = () => ({ tenant: "acme", client: null });

describe("adapter types", () => {
  it("fit route handlers of Next.js, whose own request and parameters stay typed", () => {
    expectTypeOf(bindNext(write, { scope })).toEqualTypeOf<
      (request: Request, context: RouteContext) => Promise<Response>
    >();
    // Next's own class is checked by the build of examples/frameworks/next; this is one as it sees it.
    class NextRequest extends Request {
      readonly cookies = new Map<string, string>();
    }
    const tenant = (request: NextRequest) => ({ tenant: request.cookies.get("tenant") ?? "", client: null });
    expectTypeOf(bindNext(steps, { scope: tenant }))
      .parameter(0)
      .toEqualTypeOf<NextRequest>();
    const wrapped = bindNext(
      wrap,
      { scope: tenant },
      async (request: NextRequest, { params }: { params: Promise<{ id: string }> }) =>
        new Response(`${request.cookies.size} ${(await params).id}`),
    );
    expectTypeOf(wrapped).parameter(1).toEqualTypeOf<{ params: Promise<{ id: string }> }>();
    // @ts-expect-error a capture without a handler
    void (() => bindNext(wrap, { scope }));
  });

  it("fit h3, whose own event reaches scope and handler", () => {
    const app = new H3();
    app.post("/a", bindH3(write, { scope }));
    app.post("/b", bindH3(steps, { scope: (event: H3Event) => ({ tenant: event.url.host, client: null }) }));
    app.post(
      "/c",
      bindH3(wrap, { scope, toResponse }, (event: H3Event) => event.url.pathname),
    );
    app.post(
      "/d",
      bindH3(
        wrap,
        { scope, toResponse },
        defineHandler(async () => ({})),
      ),
    );
    // @ts-expect-error a capture without h3's toResponse
    void (() => bindH3(wrap, { scope }, () => ({})));
    expect(app).toBeDefined();
  });

  it("fit Lambda's handler types, for both payload formats, authorizers and function URLs", () => {
    const rest: APIGatewayProxyHandler = bindLambda(write, {
      scope: (event: APIGatewayProxyEvent) => ({
        tenant: String(event.requestContext.authorizer?.tenant),
        client: null,
      }),
    });
    const http: APIGatewayProxyHandlerV2 = bindLambda(steps, { scope, deadlineMarginMs: 500 });
    const url: LambdaFunctionURLHandler = bindLambda(write, { scope });
    const claims = (event: APIGatewayProxyEventV2WithJWTAuthorizer) => ({
      tenant: String(event.requestContext.authorizer.jwt.claims.tenant),
      client: null,
    });
    const jwt: APIGatewayProxyHandlerV2WithJWTAuthorizer = bindLambda(write, { scope: claims });
    const wrapped = bindLambda(
      wrap,
      { scope },
      async (event: APIGatewayProxyEvent, context: Context): Promise<APIGatewayProxyResult> => ({
        statusCode: 200,
        body: `${event.path} ${context.awsRequestId}`,
      }),
    );
    expectTypeOf(wrapped).parameters.toEqualTypeOf<[APIGatewayProxyEvent, Context]>();
    const captured: APIGatewayProxyHandler = wrapped;
    expectTypeOf<Context>().toExtend<LambdaContext>();
    // @ts-expect-error a capture without a handler
    void (() => bindLambda(wrap, { scope }));
    for (const handler of [rest, http, url, jwt, captured]) expect(handler).toBeTypeOf("function");
  });

  it("demand a scope", () => {
    // @ts-expect-error no scope
    expect(() => bindNext(write, {})).toThrow(/no scope function/);
    // @ts-expect-error no scope
    expect(() => bindH3(write, {})).toThrow(/no scope function/);
    // @ts-expect-error a scope without a client
    void (() => bindLambda(write, { scope: () => ({ tenant: "acme" }) }));
  });
});
