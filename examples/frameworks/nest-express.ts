import { NestFactory } from "@nestjs/core";
import type { NestExpressApplication } from "@nestjs/platform-express";
import { shopModule } from "./_nest.ts";
import { openShop, port, ready } from "./_support.ts";

// node --conditions=oncekey-source --import tsx examples/frameworks/nest-express.ts

const shop = await openShop();
await shop.once.start();

// rawBody: the requests are compared by their bytes, and operations get numbers with all their digits.
const app = await NestFactory.create<NestExpressApplication>(shopModule(shop), { rawBody: true, logger: ["error"] });
await app.listen(port, "127.0.0.1");
ready("nest-express", shop, await app.getUrl(), () => app.close());
