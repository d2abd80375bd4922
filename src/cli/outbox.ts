import type { MessageState } from "../core/outbox.ts";
import {
  discardMessages,
  listMessages,
  type MessageQuery,
  type MessageSelection,
  retryMessages,
} from "../stores/postgres/index.ts";
import type { Command, Report } from "./command.ts";
import { type CommandLine, named, UsageError } from "./command-line.ts";
import { type Database, databaseOptions, withStore } from "./database.ts";
import { givenCount } from "./given.ts";
import { counted } from "./layout.ts";
import { messagesText } from "./outbox-text.ts";

const STATES: readonly MessageState[] = ["pending", "delivered", "dead"];
const DEFAULT_LIMIT = 100;
const MOST_LISTED = 10_000;
/** Ids of one call; the command line of the shell has an end as well. */
const MOST_IDS = 1_000;

/** `oncekey outbox list|retry|discard`: what waits for delivery, and what to do with dead letters. */
export const outboxCommand: Command = {
  summary: "list messages; retry or discard dead letters",
  about: `list shows messages, oldest first, never their payloads. retry makes messages due at once, with all their attempts
before them: dead letters, and those that wait for their next one. discard deletes messages that were not delivered, so
that what was sent behind them in their order goes on: nobody will ever get them. Both take ids (behind --, since an id
may begin with a dash), or --topic with --dead for every dead letter of a topic; a message that a relay works on at the
moment is left to it. They end with 3 where none matched.`,
  operands: ["list|retry|discard"],
  more: "message-id",
  options: {
    state: { value: "STATE", meaning: "list: only pending, delivered or dead ones" },
    topic: { value: "TOPIC", meaning: "only this topic's, or with a * at its end those that begin so" },
    tenant: { value: "TENANT", meaning: "list: only this tenant's" },
    limit: { value: "N", meaning: "list: at most so many, 1 to 10000; default: 100" },
    dead: { meaning: "retry, discard: all dead letters of --topic" },
    ...databaseOptions,
  },
  examples: [
    "oncekey outbox list --state dead",
    "oncekey outbox retry --topic 'invoice.*' --dead",
    "oncekey outbox discard -- 4fzzzxjylrx_lHjDqh0kCYTy0qAkVSxEWbL1wqIBkXc",
  ],
  run(line) {
    const action = actionOf(line);
    return withStore(line, (_store, database) => action(database));
  },
};

type Action = (database: Database) => Promise<Report>;

/** What was asked for, checked before anything is connected. */
function actionOf(line: CommandLine): Action {
  const [verb = "", ...ids] = line.operands;
  if (verb === "list") return listing(queryOf(line, ids));
  if (verb !== "retry" && verb !== "discard") {
    throw new UsageError(`There is no ${named("action", verb)}; write list, retry or discard.`);
  }
  const selection = selectionOf(line, ids);
  return verb === "retry"
    ? changing(selection, retryMessages, "made due at once")
    : changing(selection, discardMessages, "discarded");
}

function queryOf(line: CommandLine, ids: readonly string[]): Required<Pick<MessageQuery, "limit">> & MessageQuery {
  refuseOptions(line, ["dead"], "list");
  if (ids.length > 0) throw new UsageError("list takes no ids; narrow it by --state, --topic or --tenant.");
  const state = STATES.find((known) => known === line.values.get("state"));
  if (line.values.has("state") && state === undefined) throw new UsageError(`--state must be ${STATES.join(", ")}.`);
  const topic = line.values.get("topic");
  const tenant = line.values.get("tenant");
  return {
    limit: givenCount(line, "limit", MOST_LISTED) ?? DEFAULT_LIMIT,
    ...(state === undefined ? {} : { state }),
    ...(topic === undefined ? {} : { topic }),
    ...(tenant === undefined ? {} : { tenant }),
  };
}

function selectionOf(line: CommandLine, ids: readonly string[]): MessageSelection {
  refuseOptions(line, ["state", "tenant", "limit"], "retry and discard");
  const topic = line.values.get("topic");
  const dead = line.switches.has("dead");
  // A topic alone would reach for messages that only wait; "all of them" must be said.
  if (ids.length === 0 && topic !== undefined && dead) return { deadOf: topic };
  if (ids.length === 0 || topic !== undefined || dead) {
    throw new UsageError("Give the ids of messages, or --topic TOPIC together with --dead.");
  }
  if (ids.length > MOST_IDS) throw new UsageError(`At most ${MOST_IDS} ids can be given at once.`);
  return { ids };
}

function refuseOptions({ values, switches }: CommandLine, options: readonly string[], verb: string): void {
  const given = options.find((option) => values.has(option) || switches.has(option));
  if (given !== undefined) throw new UsageError(`The option "--${given}" does not belong to ${verb}.`);
}

function listing(query: MessageQuery & { readonly limit: number }): Action {
  return async ({ driver, schema }) => {
    const messages = await listMessages(driver, query, { schema });
    const truncated = messages.length >= query.limit;
    return { exitCode: 0, data: { truncated, messages }, text: messagesText(messages, truncated) };
  };
}

function changing(selection: MessageSelection, change: typeof retryMessages, done: string): Action {
  return async ({ driver, schema }) => {
    const changed = await change(driver, selection, { schema });
    const text =
      changed === 0
        ? "No message matched that is undelivered and not with a relay at the moment; nothing was changed.\n"
        : `${counted(changed, "message was", "messages were")} ${done}.\n`;
    return { exitCode: changed === 0 ? 3 : 0, data: { changed }, text };
  };
}
