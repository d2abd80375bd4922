import { counted, duration, visible } from "../layout.ts";
import { type Check, type Finding, numberOf, seen, textOf, type View } from "./check.ts";

/** Messages that are read at most by each index. */
const MOST_ROWS = 10_000;

/** A message that is due for so long has no relay, or one that does not keep up. */
const OVERDUE = "interval '5 minutes'";

/** Messages that nobody delivers. */
export const messagesCheck: Check = {
  name: "messages",
  needs: "tables",
  async look(view) {
    const [dead, late] = [await deadLetters(view), await overdue(view)];
    const count = dead.reduce((sum, { messages }) => sum + messages, 0);
    return seen(`${counted(count, "dead letter", "dead letters")}`, [...dead.map(deadFinding), late]);
  },
};

interface DeadTopic {
  readonly topic: string;
  readonly messages: number;
}

async function deadLetters({ sql, schema }: View): Promise<DeadTopic[]> {
  const rows = await sql(
    `SELECT topic, count(*)::text AS messages
     FROM (SELECT topic FROM ${schema}.outbox WHERE state = 'dead' LIMIT ${MOST_ROWS}) AS d
     GROUP BY topic ORDER BY count(*) DESC LIMIT 20`,
  );
  return rows.map((row) => ({ topic: visible(textOf(row, "topic")), messages: numberOf(row, "messages") }));
}

function deadFinding({ topic, messages }: DeadTopic): Finding {
  return {
    severity: "warning",
    what: `${counted(messages, "message", "messages")} of ${topic} could not be delivered and ${messages === 1 ? "is" : "are"} given up.`,
    why: "Nobody gets them, and what was sent behind them in their order waits.",
    fix: `oncekey outbox list --state dead; then oncekey outbox retry --topic '${topic}' --dead`,
  };
}

async function overdue({ sql, schema }: View): Promise<Finding | null> {
  // Two branches, so that each finds its rows by its own partial index.
  const due = (order: string) => `
    (SELECT available_at FROM ${schema}.outbox
     WHERE state = 'pending' AND order_by ${order} AND available_at < statement_timestamp() - ${OVERDUE}
     ORDER BY available_at, seq LIMIT ${MOST_ROWS})`;
  const [row] = await sql(
    `SELECT count(*)::text AS messages, (extract(epoch FROM clock_timestamp() - min(available_at)) * 1000)::float8 AS oldest_ms
     FROM (${due("IS NULL")} UNION ALL ${due("IS NOT NULL")}) AS d`,
  );
  const messages = numberOf(row, "messages");
  if (messages === 0) return null;
  return {
    severity: "warning",
    what: `${counted(messages, "message is", "messages are")} due for more than 5 min, the oldest for ${duration(numberOf(row, "oldest_ms"))}.`,
    why: "No relay delivers them, it does not keep up, or a dead letter stands before them in their order.",
    fix: "oncekey worker ./worker.js (with a relay for their topics); oncekey outbox list --state pending shows them.",
  };
}
