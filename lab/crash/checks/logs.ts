import type { Evidence } from "../evidence.ts";
import type { Invariant } from "./invariant.ts";

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;

/** What no log may hold, of any process: keys, bodies, tokens, secrets. */
export function checkLogs({ logs, exchanges, secrets }: Evidence): Invariant[] {
  const keys = new Set(exchanges.map(({ key }) => uuidIn(key)));
  const found = Object.entries(logs).flatMap(([name, text]) => [
    ...secrets.filter((secret) => text.includes(secret)).map((secret) => ({ name, secret: `${secret.slice(0, 8)}…` })),
    ...(text.match(UUID) ?? []).filter((one) => keys.has(one.toLowerCase())).map((one) => ({ name, key: one })),
  ]);
  const bytes = Object.values(logs).reduce((sum, text) => sum + text.length, 0);
  return [{ name: "no key, body, token or secret is in any log (characters)", looked: bytes, wrong: found }];
}

/** Every key of the campaign has one in it, by which it is found without looking for thousands of texts. */
function uuidIn(key: string): string {
  return (key.match(UUID)?.[0] ?? key).toLowerCase();
}
