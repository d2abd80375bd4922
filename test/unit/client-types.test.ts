import axios, { type AxiosInstance } from "axios";
import got, { type BeforeRequestHook as GotHook } from "got";
import ky, { type BeforeRequestHook as KyHook } from "ky";
import {
  type IdempotentFetch,
  type KeyOptions,
  keyForAxios,
  keyForGot,
  keyForKy,
  withIdempotency,
} from "oncekey/client/hooks";
import { expectTypeOf, it } from "vitest";

// Checked by the compiler: the hooks fit the real libraries without a cast, and a wrapped fetch keeps its own type.
it("the hooks are what axios, ky and got take", () => {
  const use = (api: AxiosInstance) => api.interceptors.request.use(keyForAxios());
  expectTypeOf(use).returns.toBeNumber();
  expectTypeOf(keyForKy()).toExtend<KyHook>();
  expectTypeOf(keyForGot()).toExtend<GotHook>();
  void axios.create().interceptors.request.use(keyForAxios({ keyVersion: 7 }));
  void ky.create({ hooks: { beforeRequest: [keyForKy({ keyHeader: "PayPal-Request-Id" })] } });
  void got.extend({ hooks: { beforeRequest: [keyForGot({ methods: ["POST"] })] } });
});

it("a wrapped fetch and its actions are of the type of the fetch that was wrapped", () => {
  const wrapped = withIdempotency(fetch);
  expectTypeOf(wrapped).toExtend<typeof fetch>();
  expectTypeOf(wrapped.action).toEqualTypeOf<(key?: string) => typeof fetch>();
  expectTypeOf(wrapped).toEqualTypeOf<IdempotentFetch<typeof fetch>>();

  const narrow = async (path: `/${string}`, init?: { readonly method: "POST"; readonly trace: string }) => [path, init];
  const own = withIdempotency(narrow).action();
  expectTypeOf(own).toEqualTypeOf<typeof narrow>();
});

it("options are spelled right, or refused", () => {
  expectTypeOf<KeyOptions>().toHaveProperty("keyHeader");
  // @ts-expect-error there is no version 1
  void keyForKy({ keyVersion: 1 });
  // @ts-expect-error actions are the wrapped fetch's business
  void keyForAxios({ requireAction: true });
  // @ts-expect-error no function that sends
  expectTypeOf(() => withIdempotency("fetch")).toBeFunction();
});
