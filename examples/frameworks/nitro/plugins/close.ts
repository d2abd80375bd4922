import { defineNitroPlugin } from "nitro/runtime";
import { once, pool } from "../lib/shop.ts";

export default defineNitroPlugin((app) => {
  app.hooks.hook("close", async () => {
    await once.close();
    await pool.end();
  });
});
