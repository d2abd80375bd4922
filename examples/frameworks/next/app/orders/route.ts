import { idempotent } from "oncekey/next";
import { scopeOf, shop } from "../../lib/shop.ts";

export const POST = idempotent(shop.createOrder, { scope: scopeOf });
