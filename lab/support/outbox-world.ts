/** What the processes of the campaign tell each other. */

/** How a relay process works. Durations in milliseconds. */
export interface RelaySettings {
  /** The sender's database, whose outbox is delivered. */
  readonly url: string;
  readonly sinkUrl: string;
  readonly leaseMs: number;
  readonly timeoutMs: number;
  readonly intervalMs: number;
  readonly longestPauseMs: number;
  readonly maxAttempts: number;
}

/** How the sink works. */
export interface SinkSettings {
  /** The consumer's own database. */
  readonly url: string;
  /** Longest time that an effect is made to take, so that kills meet deliveries under way. */
  readonly slowMs: number;
  /** The order whose first message is refused, for ever. */
  readonly poisonedOrder: string;
}

/** The payload of a message. */
export interface LabPayload {
  /** 0, 1, 2 …: which message it is, whatever id it got. */
  readonly n: number;
  /** Its transaction was rolled back: nobody may ever see it. */
  readonly rolledBack: boolean;
  /** 0, 1, 2 … within a lane: an order whose transactions come one after the other. */
  readonly place: number | null;
}

/** What a message is, as it was sent. */
export interface SentMessage extends LabPayload {
  readonly orderBy: string | null;
}
