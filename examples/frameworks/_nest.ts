import {
  Body,
  type CanActivate,
  Controller,
  type DynamicModule,
  type ExecutionContext,
  Get,
  Post,
  UnauthorizedException,
  UseGuards,
} from "@nestjs/common";
import { Idempotent, OncekeyModule } from "oncekey/nest";
import { type Shop, scopeOf, tenantOf } from "./_support.ts";

/** What both platforms' requests have. */
interface HttpRequest {
  readonly method: string;
  readonly originalUrl: string;
  readonly params: unknown;
  readonly headers: { readonly authorization?: string };
}

const scope = (request: HttpRequest) => scopeOf(request.headers.authorization);

const guard: CanActivate = {
  canActivate(context: ExecutionContext) {
    const { headers } = context.switchToHttp().getRequest<HttpRequest>();
    if (tenantOf(headers.authorization) === null) throw new UnauthorizedException();
    return true;
  },
};

/** The shop as a Nest application's root module. */
export function shopModule(shop: Shop): DynamicModule {
  class ShopController {
    /** The operation takes the place of the method; its own code never runs. */
    createOrder(): void {}

    /** An existing method. */
    createRefund(body: { order: string }) {
      return shop.refund(body.order);
    }

    effects() {
      return shop.effects();
    }
  }

  // In your code:   @UseGuards(guard) @Controller() class ShopController {
  //                   @Post("orders")  @Idempotent(shop.createOrder, { scope })   createOrder() {}
  //                   @Post("refunds") @Idempotent(shop.createRefund, { scope })  createRefund(@Body() body) { … }
  //                   @Get("effects")  effects() { … }
  // This repository compiles without the old decorators that Nest needs, so they are applied by hand.
  UseGuards(guard)(ShopController);
  Controller()(ShopController);
  Body()(ShopController.prototype, "createRefund", 0);
  decorate(ShopController, "createOrder", Post("orders"), Idempotent(shop.createOrder, { scope }));
  decorate(ShopController, "createRefund", Post("refunds"), Idempotent(shop.createRefund, { scope }));
  decorate(ShopController, "effects", Get("effects"));

  class ShopModule {}
  // The examples close the shop themselves, its database included.
  const oncekey = OncekeyModule.forRoot({ once: shop.once, lifecycle: "own" });
  return { module: ShopModule, imports: [oncekey], controllers: [ShopController] };
}

function decorate(controller: { readonly prototype: object }, name: string, ...decorators: MethodDecorator[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(controller.prototype, name) as PropertyDescriptor;
  for (const decorator of decorators.reverse()) decorator(controller.prototype, name, descriptor);
}
