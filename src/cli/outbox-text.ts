import type { ListedMessage } from "../stores/postgres/index.ts";
import { alarming, aligned, counted, duration, visible } from "./layout.ts";

/** The messages for people, in the order of their sending; `truncated`: there may be more. */
export function messagesText(messages: readonly ListedMessage[], truncated: boolean): string {
  if (messages.length === 0) return "No message matches.\n";
  const more = truncated ? "There may be more; --limit shows them.\n" : "";
  const fact = `${counted(messages.length, "message", "messages")}, oldest first\n\n`;
  return `${fact}${aligned(messages.map((message) => [message.id, messageText(message)]))}${more}`;
}

/** One message in one or two lines. */
function messageText(message: ListedMessage): string {
  const { topic, tenant, attempts, reason } = message;
  const facts = [
    stateText(message),
    visible(topic),
    `tenant ${visible(tenant)}`,
    `sent ${duration(message.ageMs)} ago`,
    ...(attempts === 0 ? [] : [counted(attempts, "attempt", "attempts")]),
  ];
  return `${facts.join(", ")}${reason === null ? "" : `\n${visible(reason)}`}`;
}

/** The state, and when it is due where it waits. */
export function stateText({ state, leased, dueInMs }: ListedMessage): string {
  if (state === "dead") return alarming(state);
  if (leased) return `${state}, with a relay`;
  return dueInMs !== null && dueInMs > 0 ? `${state}, due in ${duration(dueInMs)}` : state;
}
