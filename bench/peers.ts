import { installProject, isInstalled } from "../scripts/own-projects.ts";
import { type BrokerServer, findProgram } from "../test/support/brokers/program.ts";
import { startRedis } from "../test/support/brokers/servers.ts";

/** A peer: what it is beside, and what it leaves to its user. */
export interface Peer {
  readonly variant: string;
  readonly label: string;
  /** The variant of Oncekey on the same host. */
  readonly against: string;
  readonly needsRedis: boolean;
  /** What Oncekey promises and it does not, in our words; read and measured in November 2026. */
  readonly lacks: string;
}

/** The peers, one row each. */
export const PEERS: readonly Peer[] = [
  {
    variant: "node-idempotency",
    label: "node-idempotency 1.0.11, Redis",
    against: "transaction",
    needsRedis: true,
    lacks:
      "The record is not in the business transaction: a crash in between leaves the row, and a key that answers 409 until it expires. No lease, no fence, no scope of callers, no exact bytes; waiting is a poll, and off at first.",
  },
  {
    variant: "express-idempotency",
    label: "express-idempotency 1.0.6, Redis",
    against: "transaction-express",
    needsRedis: true,
    lacks:
      "No atomic claim: of 50 requests with one key at a time, 43 to 50 ran. The record is not in the business transaction. No waiting, no lease, no fence, no scope, no exact bytes; the handler is called on replays too.",
  },
  {
    variant: "powertools",
    label: "Powertools for AWS Lambda 2.35, Redis",
    against: "transaction",
    needsRedis: true,
    lacks:
      "The record is not in the business transaction: after a crash in between the insert is done again. A changed request passes unless validation is switched on. No waiting, no fence, no scope, no exact bytes.",
  },
  {
    variant: "dbos",
    label: "DBOS 5.3, PostgreSQL",
    against: "transaction",
    needsRedis: false,
    lacks:
      "Does not compare requests: a known key with another payload gets the first result. Waiting is a poll of a second. No scope, no stored HTTP answer. As it runs here, the step's commit and its record are two.",
  },
];

const PROJECT = "bench/peers";

/** The peers that can take part, installed first unless only installed ones are wanted; says why others cannot. */
export async function availablePeers(onlyInstalled: boolean, say: (line: string) => void): Promise<readonly Peer[]> {
  if (!onlyInstalled) await installProject(PROJECT);
  if (!(await isInstalled(PROJECT))) {
    say("peers: not installed; a run without --quick, or with --only peers, installs them");
    return [];
  }
  if (findProgram("redis-server") !== null) return PEERS;
  say("peers: no redis-server on the PATH (Debian: redis-server); those that need it are left out");
  return PEERS.filter(({ needsRedis }) => !needsRedis);
}

/**
 * Starts the peers' Redis; `null` where it is not installed. It writes each change to the disk before it answers, as the
 * database does: a record that a power cut loses lets its request run twice.
 */
export async function startPeersRedis(): Promise<BrokerServer | null> {
  const command = findProgram("redis-server");
  return command === null ? null : startRedis(command, { appendonly: "yes", appendfsync: "always" });
}
