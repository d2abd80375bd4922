import type { ArrivedMessage, PublisherHarness } from "oncekey/testing";
import { type OutageProxy, outageProxy } from "../../support/brokers/outage-proxy.ts";

type Outage = Pick<PublisherHarness, "goAway" | "fallSilent" | "comeBack">;

/** A proxy of the harness' own in front of a broker, and the outages that it plays. */
export async function behindProxy(target: number | (() => number)): Promise<{ proxy: OutageProxy; outage: Outage }> {
  const proxy = await outageProxy(target);
  const outage = {
    goAway: async () => proxy.away(),
    fallSilent: async () => proxy.silent(),
    comeBack: async () => proxy.back(),
  };
  return { proxy, outage };
}

/** An arrived message, read from the headers that every publisher sets. */
export function arrivedFrom(header: (name: string) => string | undefined, payload: string): ArrivedMessage {
  return {
    id: header("oncekey-id") ?? "",
    topic: decodeURIComponent(header("oncekey-topic") ?? ""),
    tenant: decodeURIComponent(header("oncekey-tenant") ?? ""),
    correlation: header("traceparent") ?? header("x-request-id") ?? null,
    payload,
  };
}
