import { createRequire } from "node:module";
import type express from "express";
import { shopRoutes } from "./_express.ts";
import { openShop, serve } from "./_support.ts";

// node --conditions=oncekey-source --import tsx examples/frameworks/express4.ts
//
// Express 4 is installed under another name here, which has no types of its own.

const express4 = createRequire(import.meta.url)("express4") as typeof express;

const shop = await openShop();
await shop.once.start();

const app = express4();
shopRoutes(app, shop);
await serve("express4", shop, app);
