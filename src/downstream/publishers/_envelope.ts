import type { OutboxMessage } from "../publisher.ts";

/**
 * What travels beside the payload, by the same names at every broker. Topic and tenant may hold any character, headers
 * may not: they are percent-encoded (`encodeURIComponent`), which leaves ordinary names as they are.
 */
export function envelope(message: OutboxMessage): Record<string, string> {
  const { id, topic, tenant, correlation } = message;
  const names = {
    "oncekey-id": id,
    "oncekey-topic": encodeURIComponent(topic),
    "oncekey-tenant": encodeURIComponent(tenant),
  };
  return { ...names, ...correlationHeader(correlation) };
}

/** W3C Trace Context, https://www.w3.org/TR/trace-context/#traceparent-header: what tracing libraries look for. */
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/;

function correlationHeader(correlation: string | null): Record<string, string> {
  if (correlation === null || correlation === "") return {};
  if (TRACEPARENT.test(correlation)) return { traceparent: correlation };
  return { "x-request-id": /^[\x21-\x7e]+$/.test(correlation) ? correlation : encodeURIComponent(correlation) };
}
