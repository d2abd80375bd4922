import { idempotent } from "oncekey/h3";
import { createOrder, scopeOf } from "../../lib/shop.ts";

export default idempotent(createOrder, { scope: scopeOf });
