import type { HeaderLine } from "../../src/core/outcome.ts";
import type { Exchange } from "../../src/http/exchange.ts";

const NONE: readonly string[] = [];

/** A POST as an adapter hands it to a gate. */
export function exchangeOf(body: Uint8Array, key: string): Exchange<null> {
  const headers: readonly HeaderLine[] = [
    ["host", "api.example.com"],
    ["user-agent", "bench/1"],
    ["content-type", "application/json"],
    ["content-length", String(body.length)],
    ["idempotency-key", key],
  ];
  return {
    native: null,
    method: "POST",
    target: "/v1/orders",
    params: {},
    headerLines: (name) => {
      const line = headers.find(([other]) => other === name);
      return line === undefined ? NONE : [line[1]];
    },
    readBody: async () => ({ kind: "bytes", bytes: body }),
  };
}
