import type { BodyRead, Exchange } from "../../src/http/exchange.ts";

/** An exchange with those header lines (names in lower case), that target and that body. */
export function exchangeOf(
  headers: Readonly<Record<string, readonly string[]>>,
  { target = "/", body = new Uint8Array() }: { readonly target?: string; readonly body?: Uint8Array } = {},
): Exchange {
  return {
    ...{ native: null, method: "POST", target, params: {} },
    headerLines: (name) => headers[name] ?? [],
    readBody: async (limitBytes): Promise<BodyRead> =>
      body.length > limitBytes ? { kind: "too_large" } : { kind: "bytes", bytes: body },
  };
}
