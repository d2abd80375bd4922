import { adapterSuite } from "oncekey/testing";
import { describe, it } from "vitest";
import { koaHost } from "./adapter-hosts/koa.ts";
import { nestHost } from "./adapter-hosts/nest.ts";
import { nestPeers } from "./adapter-hosts/nest-peers.ts";
import { nodeHost } from "./adapter-hosts/node.ts";

const runner = { describe, it };

adapterSuite(runner, "node:http", nodeHost);
adapterSuite(runner, "koa 3", koaHost);
for (const [name, peer] of Object.entries(nestPeers)) adapterSuite(runner, name, () => nestHost(peer()));
