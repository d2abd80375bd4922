import { graphqlHost } from "../support/rpc-graphql.ts";
import { rpcSuite } from "../support/rpc-suite.ts";
import { trpcHost } from "../support/rpc-trpc.ts";

rpcSuite(trpcHost);
rpcSuite(graphqlHost);
