/** A message as a publisher gets it. */
export interface OutboxMessage {
  /** Stable: every redelivery of the message carries it. 43 characters of base64url. */
  readonly id: string;
  readonly topic: string;
  /** JSON text, with the digits as they were sent. */
  readonly payload: string;
  /** Partition or routing key for the other side. */
  readonly key: string | null;
  /** Messages of a tenant with the same value come one after the other. */
  readonly orderBy: string | null;
  readonly tenant: string;
  readonly client: string | null;
  /** What the operation's binding declared (`null`: nothing): ids by which the tenant's own credentials are found. */
  readonly context: unknown;
  /** `traceparent` (or `X-Request-Id`) of the request that sent it. */
  readonly correlation: string | null;
  readonly createdAt: Date;
  /** 1, 2 …: how often a delivery was begun. */
  readonly attempt: number;
}

/** What became of one attempt to deliver. A throw is a `retry`: nobody knows whether it arrived. */
export type Published =
  | { readonly kind: "delivered" }
  /** Not now: again after the relay's growing pause, or after `afterMs` where the other side said so. `why` names no payload. */
  | { readonly kind: "retry"; readonly why: string; readonly afterMs?: number }
  /** Never: a dead letter at once. */
  | { readonly kind: "dead"; readonly why: string };

/** Delivers one message, and resolves once the other side has taken it over for good. */
export type Publish = (message: OutboxMessage, signal: AbortSignal) => Promise<Published>;

/** Delivers messages to one system. */
export interface Publisher {
  /** Names it in errors and in the reasons that operators see. */
  readonly name: string;
  /** Resolves once the other side has taken the message over for good. The signal aborts at the relay's time-out. */
  publish(message: OutboxMessage, signal: AbortSignal): Promise<Published>;
  /** Lets go of what it opened itself. A relay never calls it: publishers may be shared. */
  close?(): Promise<void>;
}

/** A publisher of your own from its function; the name is what operators see in the reason of a failed delivery. */
export function publisherOf(name: string, publish: Publish): Publisher {
  return { name, publish };
}

/** The other side has it. */
export function delivered(): Published {
  return { kind: "delivered" };
}

/** Not now; see {@link Published}. */
export function retry(why: string, afterMs?: number): Published {
  return afterMs === undefined ? { kind: "retry", why } : { kind: "retry", why, afterMs };
}

/** Never; see {@link Published}. */
export function dead(why: string): Published {
  return { kind: "dead", why };
}
