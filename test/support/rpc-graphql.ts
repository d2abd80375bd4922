import { createGraphQLError, createSchema, createYoga } from "graphql-yoga";
import { idempotentDirective, idempotentResolver } from "oncekey/graphql";
import type { RpcHost, RpcInput, RpcOperations } from "./rpc-world.ts";

const typeDefs = `
  ${idempotentDirective}
  scalar Any
  type Order { item: String, extra: Any, price: Any, items: Any }
  type Query { ping: String }
  type Mutation {
    create(item: String, amount: Float, idempotencyKey: String): Order
    charge(item: String, amount: Float, idempotencyKey: String): Order
    wrap(item: String, amount: Float, idempotencyKey: String): Order
  }
`;

interface YogaContext {
  readonly request: Request;
}

function resolversOf({ create, charge, wrap, existing, allowed }: RpcOperations) {
  const replayed = new WeakSet<Request>();
  const binding = {
    scope: ({ context }: { context: YogaContext }) => ({
      tenant: context.request.headers.get("x-tenant") ?? "",
      client: null,
    }),
    authorize: allowed,
    onReplay: ({ context }: { context: YogaContext }) => void replayed.add(context.request),
  };
  const Mutation = {
    create: idempotentResolver(create, binding),
    charge: idempotentResolver(charge, binding),
    wrap: idempotentResolver(wrap, binding, (_: unknown, { item, amount }: RpcInput) =>
      existing({ ...(item !== undefined && { item }), ...(amount !== undefined && { amount }) }),
    ),
  };
  return { replayed, resolvers: { Mutation } };
}

interface GraphqlBody {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly { readonly message: string; readonly extensions?: { readonly code?: string } }[];
}

/** GraphQL Yoga with its masking of unexpected errors; the key travels as the argument. */
export const graphqlHost: RpcHost = {
  name: "graphql",
  listener(operations) {
    const { replayed, resolvers } = resolversOf(operations);
    const onResponse = ({ request, response }: { request: Request; response: Response }) => {
      if (replayed.has(request)) response.headers.set("idempotent-replayed", "true");
    };
    return createYoga({
      schema: createSchema({ typeDefs, resolvers }) as never,
      logging: false,
      plugins: [{ onResponse }],
    });
  },
  async call(url, { mutation, key, tenant = "acme", input = {}, signal = null }) {
    const query = `mutation ($item: String, $amount: Float, $key: String) {
      ${mutation}(item: $item, amount: $amount, idempotencyKey: $key) { item extra price items }
    }`;
    const answer = await fetch(`${url}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-tenant": tenant },
      body: JSON.stringify({ query, variables: { ...input, key } }),
      signal,
    });
    const { data, errors } = (await answer.json()) as GraphqlBody;
    const error = errors?.[0];
    if (error === undefined) {
      return { kind: "value", value: data?.[mutation], replayed: answer.headers.has("idempotent-replayed") };
    }
    return { kind: "error", status: answer.status, message: error.message, code: undefined, ...error.extensions };
  },
  error(kind, message) {
    const codes = {
      conflict: { code: "TAKEN", http: { status: 409 } },
      unauthorized: { code: "UNAUTHENTICATED", http: { status: 401 } },
      "gone-silent": { code: "TIMEOUT", http: { status: 408 } },
    };
    return createGraphQLError(message, { extensions: codes[kind] });
  },
};
