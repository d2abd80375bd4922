import type { Done } from "./entries.ts";
import { type Asking, ask, pathWith } from "./request.ts";

/** A message on its way out: nothing of what it tells. */
export interface Message {
  readonly id: string;
  readonly topic: string;
  readonly tenant: string;
  readonly state: string;
  readonly attempts: number;
  readonly orderBy: string | null;
  readonly reason: string | null;
  readonly createdAt: string;
  readonly availableAt: string;
  readonly entryId: string | null;
}

/** One page of messages. */
export interface MessagePage {
  readonly messages: readonly Message[];
  readonly next: string | null;
}

/** Raises `RequestError`. */
export const messages = (state: "dead" | "pending", cursor: string | null, asking: Asking) =>
  ask<MessagePage>(pathWith("outbox", { state, cursor }), asking);

/** Raises `RequestError`: 409 where it was delivered, or is at this moment. */
export const changeMessage = (id: string, change: "resend" | "discard", reason: string) =>
  ask<Done>(`outbox/${id}/${change}`, { method: "POST", body: { reason } });
