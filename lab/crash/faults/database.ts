import { awaited, type FaultKind, forMs } from "../fault.ts";

const TRAFFIC_LIMIT_MS = 5_000;

/** The server is stopped with `immediate` (SIGQUIT: no checkpoint, no goodbye), and recovers at its next start. */
export const postgresImmediate: FaultKind = {
  name: "postgres_immediate",
  lane: "database",
  async strike({ database: { server }, network }, random) {
    const wires = Object.values(network.database);
    const underWay = () => wires.reduce((sum, wire) => sum + wire.inFlight(), 0);
    const downMs = random.between(0, 1_500);
    await awaited(() => underWay() > 0, TRAFFIC_LIMIT_MS);
    const met = underWay();
    await server.stop("immediate");
    await forMs(downMs);
    await server.start();
    return { did: `PostgreSQL stopped with immediate, ${met} statements under way; down for ${downMs} ms`, met };
  },
};

/** Every connection that does something is ended by the server, as an administrator or a failover does. */
export const terminateBackends: FaultKind = {
  name: "terminate_backends",
  lane: "database",
  async strike({ database: { pool } }) {
    let met = 0;
    await awaited(async () => {
      const { rows } = await pool.query<{ ended: boolean }>(
        `SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'`,
      );
      met = rows.filter(({ ended }) => ended).length;
      return met > 0;
    }, TRAFFIC_LIMIT_MS);
    return { did: `the server ended ${met} connections that were at work`, met };
  },
};

const FULL = /No space left on device/;
const FULL_LIMIT_MS = 8_000;
/** Each look reads the whole log. */
const LOG_EVERY_MS = 200;

/** The disk that the entries lie on has not one byte left, for as long as it takes to hurt, and a little longer. */
export const diskFull: FaultKind = {
  name: "disk_full",
  lane: "database",
  missing: ({ database: { smallDisk } }) => (smallDisk.kind === "missing" ? smallDisk.why : null),
  async strike({ database: { smallDisk, logged } }, random) {
    if (smallDisk.kind === "missing") throw new Error(smallDisk.why);
    const before = logged(FULL);
    const longerMs = random.between(200, 1_000);
    smallDisk.disk.fill();
    try {
      await awaited(() => logged(FULL) > before, FULL_LIMIT_MS, LOG_EVERY_MS);
      await forMs(longerMs);
    } finally {
      smallDisk.disk.free();
    }
    const met = logged(FULL) - before;
    return { did: `the disk of the entries was full; ${met} statements failed of it`, met };
  },
};
