import express from "express";
import { idempotent } from "oncekey/express";
import { instance, scope, served, transactionOf } from "./oncekey.ts";
import type { Variant } from "./variant.ts";

/** Oncekey's `transaction` kind on Express: beside a peer that is a middleware there. */
export const transactionExpress: Variant = {
  name: "transaction-express",
  title: "Oncekey, `transaction`, on Express",
  async open(world) {
    const once = instance(world);
    const operation = transactionOf(once, world.handler);
    const app = express().disable("x-powered-by").disable("etag");
    app.post("/v1/invoices", express.json(), idempotent(operation, { scope }));
    return served(once, operation, app);
  },
};
