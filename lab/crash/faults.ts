import type { FaultKind } from "./fault.ts";
import { clock } from "./faults/clocks.ts";
import { connectionsExhausted } from "./faults/connections.ts";
import { diskFull, postgresImmediate, terminateBackends } from "./faults/database.ts";
import { redeploy, rotateKeys } from "./faults/deploys.ts";
import { longTransaction } from "./faults/long-transaction.ts";
import { freeze, kill } from "./faults/processes.ts";
import { down, landsLater, nextPayments, slow } from "./faults/provider.ts";
import { purge } from "./faults/purge.ts";
import { wireFaults } from "./faults/wires.ts";

/** Every kind of fault, one row each. A new one: its file under faults/, and a row here. */
export const FAULTS: readonly FaultKind[] = [
  kill("api"),
  kill("worker"),
  kill("relay"),
  kill("psp"),
  kill("clients"),
  clock("ahead"),
  clock("behind"),
  redeploy,
  rotateKeys,
  freeze("api"),
  freeze("worker"),
  freeze("relay"),
  freeze("psp"),
  postgresImmediate,
  terminateBackends,
  diskFull,
  connectionsExhausted,
  longTransaction,
  purge,
  ...wireFaults,
  nextPayments("fail_next"),
  nextPayments("drop_next"),
  landsLater,
  down,
  slow,
];
