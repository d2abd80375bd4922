import type { HeaderLine } from "../../src/core/outcome.ts";
import type { Exchange } from "../../src/http/exchange.ts";

const NONE: readonly string[] = [];
const HEADERS: readonly HeaderLine[] = [
  ["host", "api.example.com"],
  ["user-agent", "bench/1"],
  ["content-type", "application/json"],
];

/** A POST as an adapter hands it to a gate. */
export function exchangeOf(body: Uint8Array, key: string): Exchange<null> {
  // Handed over, as an adapter does: it is not the exchange that keeps the bytes.
  let bytes: Uint8Array | null = body;
  const handOver = () => {
    const read = { kind: "bytes", bytes: bytes ?? new Uint8Array() } as const;
    bytes = null;
    return read;
  };
  return {
    native: null,
    method: "POST",
    target: "/v1/orders",
    params: {},
    headerLines(name) {
      if (name === "idempotency-key") return [key];
      const line = HEADERS.find(([other]) => other === name);
      return line === undefined ? NONE : [line[1]];
    },
    readBody: async () => handOver(),
  };
}
