import { autovacuumCheck } from "./autovacuum.ts";
import type { Check } from "./check.ts";
import { clockCheck } from "./clock.ts";
import { connectionsCheck } from "./connections.ts";
import { durabilityCheck } from "./durability.ts";
import { growthCheck } from "./growth.ts";
import { indexesCheck } from "./indexes.ts";
import { isolationCheck } from "./isolation.ts";
import { keyOfPayloadCheck } from "./key-of-payload.ts";
import { keyPerRetryCheck } from "./key-per-retry.ts";
import { keyReuseCheck } from "./key-reuse.ts";
import { messagesCheck } from "./messages.ts";
import { poolerCheck } from "./pooler.ts";
import { purgeCheck } from "./purge.ts";
import { retentionCheck } from "./retention.ts";
import { routesCheck } from "./routes.ts";
import { schemaCheck } from "./schema.ts";
import { stuckCheck } from "./stuck.ts";

/** Every check, one row each, in the order of the report. */
export const checks: readonly Check[] = [
  schemaCheck,
  indexesCheck,
  durabilityCheck,
  isolationCheck,
  poolerCheck,
  connectionsCheck,
  clockCheck,
  autovacuumCheck,
  retentionCheck,
  purgeCheck,
  stuckCheck,
  messagesCheck,
  growthCheck,
  keyPerRetryCheck,
  keyOfPayloadCheck,
  keyReuseCheck,
  routesCheck,
];
