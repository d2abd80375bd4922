import express from "express";
import { shopRoutes } from "./_express.ts";
import { openShop, serve } from "./_support.ts";

// node --conditions=oncekey-source --import tsx examples/frameworks/express.ts

const shop = await openShop();
await shop.once.start();

const app = express();
shopRoutes(app, shop);
await serve("express", shop, app);
