import type { BodyStore } from "../core/body-store.ts";
import type { EncryptionKey } from "../core/cipher.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { OncekeyError } from "../core/errors.ts";
import type { Compare, FingerprintSecret } from "../core/fingerprint.ts";
import type { KeySpace } from "../core/identity.ts";
import { type Random, systemRandom } from "../core/random.ts";
import type { Store } from "../core/store.ts";
import type { AfterFailure } from "./definition.ts";
import type { Observer } from "./emitter.ts";

/** Options of `createOncekey`. Durations in milliseconds. */
export interface OncekeyOptions<Tx> {
  /** Where entries live. */
  readonly store: Store<Tx>;
  /** HTTP dialect. Default `ietf`. */
  readonly profile?: string;
  /** Length of a lease; it is renewed while the operation runs. Default 30,000. */
  readonly leaseMs?: number;
  /** How long a duplicate waits for a running request before 409. Default 5,000. */
  readonly waitMs?: number;
  /** How long an outcome is replayed, from completion. Default 86,400,000 (24 h). */
  readonly retentionMs?: number;
  /** For how long clients may go on retrying; retention must not be shorter. Default 43,200,000 (12 h). */
  readonly clientRetryWindowMs?: number;
  /** How long after retention a late retry is refused instead of run. Default 0: it runs as new. */
  readonly tombstoneMs?: number;
  /** Duplicates that may wait for one key in this process; more get 409 at once. Default 100. */
  readonly maxWaitersPerKey?: number;
  /** Duplicates that may wait in this process. Default 1,000. */
  readonly maxWaiters?: number;
  /** Largest request body in bytes. Default 1,048,576. */
  readonly maxBodyBytes?: number;
  /** Longest answer of a captured handler in bytes; a longer one is refused, its key needs recovery. Default 67,108,864. */
  readonly maxAnswerBytes?: number;
  /**
   * What the answers of captured handlers may hold in memory together while they are recorded, in bytes; what goes beyond,
   * or is longer than 256 KiB, waits in temporary files without a name. Default 67,108,864.
   */
  readonly maxRecordingBytes?: number;
  /** Longest accepted key in characters. Default 255. */
  readonly maxKeyLength?: number;
  /** `digest`: store only the key's digest and a prefix, where keys may hold personal data. Default `raw`. */
  readonly storedKey?: "raw" | "digest";
  /** What a retry must match, unless an operation says otherwise. Default: the profile's, for `ietf` `wire`. */
  readonly compare?: Compare;
  /** How far one key reaches, unless an operation says otherwise. Default: the profile's, for `ietf` `operation`. */
  readonly keySpace?: KeySpace;
  /** What a key does after a rejection, unless an operation says otherwise. Default: the profile's, for `ietf` `replay`. */
  readonly afterFailure?: AfterFailure;
  /**
   * Reads the profile's header for the instant of the first attempt (`Idempotency-First-Sent`): a request that was first
   * sent longer ago than outcomes are kept, and whose key is unknown, is refused instead of run. Default: the profile's,
   * for `ietf` false.
   */
  readonly refuseLateRetries?: boolean;
  /** Sends `Idempotency-Retention` (seconds) with every answer of a bound operation. Default false. */
  readonly publishRetention?: boolean;
  /** HMAC secrets for fingerprints, newest first. Default: plain SHA-256. */
  readonly fingerprintSecrets?: readonly FingerprintSecret[];
  /**
   * AES-256 keys, newest first, for all that is stored of what clients sent, operations gave and other systems answered.
   * Default: stored as it is.
   */
  readonly encryptionKeys?: readonly EncryptionKey[];
  /**
   * Longest body of an answer that is kept in the entry's row, in bytes. Without a `bodyStore` a longer one is not kept:
   * retries hear that the operation was carried out, and no more. Default 1,048,576.
   */
  readonly maxStoredBodyBytes?: number;
  /** Compresses bodies from 1 KiB where that saves an eighth; older releases cannot read these. Default true. */
  readonly compressBodies?: boolean;
  /** Where bodies lie that are too long for a row: `fileBodyStore`, `s3BodyStore`. Default `null`: nowhere. */
  readonly bodyStore?: BodyStore | null;
  /** With a `bodyStore`: longer bodies go there, in bytes. Default 262,144. */
  readonly bodyThresholdBytes?: number;
  /** The topics that may be sent: exact names, or prefixes that end in `*`. Default: any. */
  readonly topics?: readonly string[];
  /** Largest payload of a message in bytes of JSON. Default 262,144, what the strictest queues take. */
  readonly maxMessageBytes?: number;
  /** Told of errors that a client's answer cannot show (an outside call's, a background completion's). Default: standard error. */
  readonly onError?: (error: unknown, about: ErrorContext) => void;
  /** Told of all that happens: metrics, traces, logs. It can slow or break no request unless it blocks. Default: nobody. */
  readonly observe?: Observer | readonly Observer[];
  /** For crash tests: awaited between any two effects, with the point's name. Default: none. */
  readonly onPoint?: (point: string) => void | Promise<void>;
  /** The local clock, for tests. Default: the system's. */
  readonly clock?: Clock;
  /** Where fences, seeds and jitter come from, for tests. Default: the system's. */
  readonly random?: Random;
}

/** Where an error happened; holds no key and no payload. */
export interface ErrorContext {
  readonly operation: string;
  readonly at: string;
}

/** The options with every default filled in. */
export type Settings = Omit<Required<OncekeyOptions<unknown>>, "store" | "onPoint">;

const HOUR = 3_600_000;

/** The defaults, one row an option. */
export const DEFAULTS: Settings = {
  profile: "ietf",
  leaseMs: 30_000,
  waitMs: 5_000,
  retentionMs: 24 * HOUR,
  clientRetryWindowMs: 12 * HOUR,
  tombstoneMs: 0,
  maxWaitersPerKey: 100,
  maxWaiters: 1_000,
  maxBodyBytes: 1_048_576,
  maxAnswerBytes: 67_108_864,
  maxRecordingBytes: 67_108_864,
  maxKeyLength: 255,
  storedKey: "raw",
  compare: "wire",
  keySpace: "operation",
  afterFailure: "replay",
  refuseLateRetries: false,
  publishRetention: false,
  fingerprintSecrets: [],
  encryptionKeys: [],
  maxStoredBodyBytes: 1_048_576,
  compressBodies: true,
  bodyStore: null,
  bodyThresholdBytes: 262_144,
  topics: ["*"],
  maxMessageBytes: 262_144,
  onError: printError,
  observe: [],
  clock: systemClock,
  random: systemRandom,
};

/** Longest attempt of an operation that does not say. */
export const DEFAULT_MAX_DURATION_MS = 60_000;

/** Options that have no default. */
const WITHOUT_DEFAULT = ["store", "onPoint"];

/**
 * Options and defaults together; options given as `undefined` take the default. Raises `oncekey_config_invalid` for a name
 * that is none: a misspelt option would quietly be its default.
 */
export function settingsOf(options: OncekeyOptions<never>): Settings {
  const stranger = Object.keys(options).find((name) => !(name in DEFAULTS) && !WITHOUT_DEFAULT.includes(name));
  if (stranger !== undefined) {
    throw new OncekeyError(
      "oncekey_config_invalid",
      `createOncekey has no option ${JSON.stringify(stranger)}. Nothing was started. Correct its name, or take it out.`,
    );
  }
  const given = Object.entries(options).filter(([name, value]) => name in DEFAULTS && value !== undefined);
  const settings: Settings = { ...DEFAULTS, ...Object.fromEntries(given) };
  // A logger that throws must not end a sweeper, or take the place of the error it was told of.
  const onError: Settings["onError"] = (error, about) => {
    try {
      settings.onError(error, about);
    } catch {
      printError(error, about);
    }
  };
  return { ...settings, onError };
}

function printError(error: unknown, about: ErrorContext): void {
  // The name and the place only: an error's message is the application's, and may hold what must not be logged.
  const name = error instanceof Error ? error.name : typeof error;
  process.stderr.write(`oncekey: ${about.operation} at ${about.at}: ${name} (set onError to see it whole)\n`);
}
