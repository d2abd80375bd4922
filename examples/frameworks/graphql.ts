/** GraphQL Yoga: mutations whose key comes as an argument, or by the directive @idempotent. */
import { createSchema, createYoga, type YogaInitialContext } from "graphql-yoga";
import { idempotentDirective, idempotentResolver } from "oncekey/graphql";
import { openShop, scopeOf, serve } from "./_support.ts";

const shop = await openShop();

const typeDefs = `
  ${idempotentDirective}
  type Order { id: ID!, item: String! }
  type Refund { id: ID!, order: ID! }
  type Effects { orders: [Order!]!, refunds: [Refund!]! }
  type Query { effects: Effects! }
  type Mutation {
    createOrder(item: String!, idempotencyKey: String): Order
    createRefund(order: ID!, idempotencyKey: String): Refund
  }
`;

// Whose key it is comes from authentication; without it the scope is malformed and nothing runs.
const scope = ({ context }: { readonly context: YogaInitialContext }) =>
  scopeOf(context.request.headers.get("authorization"));

const schema = createSchema<YogaInitialContext>({
  typeDefs,
  resolvers: {
    Query: { effects: () => shop.effects() },
    Mutation: {
      createOrder: idempotentResolver(shop.createOrder, { scope }),
      createRefund: idempotentResolver(shop.createRefund, { scope }, (_: unknown, { order }: { order: string }) =>
        shop.refund(order),
      ),
    },
  },
});

await shop.once.start();
await serve("graphql", shop, createYoga({ schema, logging: false }) as never);
