import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Destination, delivered } from "oncekey/outbox";
import { webhookPublisher } from "oncekey/publishers/webhook";
import { publishFirst, readJson } from "./ownership.ts";
import type { Settings } from "./settings.ts";

/**
 * Who gets the example's messages: with `ONCEKEY_WEBHOOK_URL` an endpoint of the tenant, signed with the tenant's own
 * secret; else a line on standard error, which names the message and tells nothing of it.
 */
export function destinationOf({ webhookUrl, dataDir }: Settings): Destination {
  if (webhookUrl === undefined) {
    return async ({ topic, id }) => {
      console.error(`message ${topic} ${id}`);
      return delivered();
    };
  }
  return webhookPublisher({
    endpoint({ tenant }) {
      const url = new URL(webhookUrl);
      url.searchParams.set("tenant", tenant);
      return { url, secrets: [secretOf(dataDir, tenant)] };
    },
  });
}

/**
 * The tenant's signing secret: made when it is first needed, kept in a file of mode 0600 in the data directory, where
 * whoever tries the example can read it. A real service keeps one for each endpoint, in a vault.
 */
function secretOf(dataDir: string, tenant: string): string {
  mkdirSync(dataDir, { recursive: true });
  const file = join(dataDir, `webhook-secret-${tenant}.json`);
  const known = readJson<string>(file);
  if (known !== null) return known;
  publishFirst(file, `whsec_${randomBytes(32).toString("base64")}`);
  // Another process may have been faster: there is one secret, the file's.
  return readJson<string>(file) ?? "";
}
