import type { NewMessage } from "./message.ts";

/** The states of an outbox row: to be delivered, delivered, or given up (a dead letter, kept for an operator). */
export type MessageState = "pending" | "delivered" | "dead";

/** A message that a relay has leased. Until the lease ends nobody else delivers it. */
export interface ClaimedMessage extends Omit<NewMessage, "delayMs"> {
  /** Place in the order of sending; grows with it within one `orderBy`. Decimal digits: it may pass 2^53. */
  readonly seq: string;
  /** How often it was claimed, this time included. */
  readonly attempt: number;
  /** The relay's owner token, random. */
  readonly fence: Uint8Array;
  readonly createdAt: Date;
}

/** What a settling statement must match: the row and the lease. */
export type HeldMessage = Pick<ClaimedMessage, "id" | "fence">;

/** What a relay claims. */
export interface MessageClaim {
  /** Topics it can deliver: exact names, or prefixes that end in `*`. Others are left to relays that know them. */
  readonly topics: readonly string[];
  readonly limit: number;
  readonly leaseMs: number;
}

/** The outbox as the relay sees it. Every method is one atomic step in a commit of its own. */
export interface OutboxStore {
  /**
   * Leases due messages, oldest first. Of those with one (`tenant`, `orderBy`) only the first that is not delivered, so
   * that none overtakes another: a dead or waiting one holds back what was sent after it, and nothing else.
   */
  claim(claim: MessageClaim): Promise<ClaimedMessage[]>;
  /** Extends the lease. `false`: it was lost. */
  renew(held: HeldMessage, leaseMs: number): Promise<boolean>;
  /** Marks it delivered. `false`: the lease was lost, somebody else delivers it (again). */
  delivered(held: HeldMessage): Promise<boolean>;
  /** Leases the message behind a delivered one in its order, or `null`: there is none, or it is not due. */
  claimNext(
    after: Pick<ClaimedMessage, "tenant" | "orderBy" | "seq">,
    claim: MessageClaim,
  ): Promise<ClaimedMessage | null>;
  /** Gives it back, to be claimed after `waitMs`. `reason` is shown to operators. `false`: the lease was lost. */
  postpone(held: HeldMessage, waitMs: number, reason: string): Promise<boolean>;
  /** Gives it up: a dead letter, which holds back its order until an operator retries or discards it. */
  bury(held: HeldMessage, reason: string): Promise<boolean>;
  /** Deletes at most `limit` messages that were delivered at least `keepMs` ago. Returns how many. */
  purge(limit: number, keepMs: number): Promise<number>;
  /** What waits in the outbox, by topic and state, without `delivered`. */
  waiting(): Promise<readonly WaitingMessages[]>;
}

/** Messages of one topic in one state. */
export interface WaitingMessages {
  readonly topic: string;
  readonly state: Exclude<MessageState, "delivered">;
  readonly count: number;
  /** Age of the oldest, in milliseconds. */
  readonly oldestMs: number;
}

/** Whether a topic is one of the claimed ones. */
export function claimsTopic(topics: readonly string[], topic: string): boolean {
  return topics.some((known) => (known.endsWith("*") ? topic.startsWith(known.slice(0, -1)) : known === topic));
}
