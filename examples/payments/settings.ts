import { join, resolve } from "node:path";
import type { EncryptionKey, FingerprintSecret } from "oncekey";
import { keyRing } from "./key-ring.ts";

/** How the charge operation settles a call to the provider that got no answer (see operations/charges.ts). */
export type PspRecover = "dedupes" | "find_cancel" | "find_settles" | "at_most_once";

const RECOVER_FORMS: readonly PspRecover[] = ["dedupes", "find_cancel", "find_settles", "at_most_once"];

/** What the environment asks of the example. Durations in milliseconds; `undefined`: the library's default. */
export interface Settings {
  /** 0: any free port. */
  readonly port: number;
  readonly pspPort: number;
  readonly dataDir: string;
  /** A PostgreSQL of yours instead of the embedded one. */
  readonly databaseUrl: string | undefined;
  /** A provider that already runs. */
  readonly pspUrl: string | undefined;
  readonly pspRecover: PspRecover;
  /** HTTP dialect; the library refuses a name it does not know. */
  readonly profile: string | undefined;
  readonly leaseMs: number | undefined;
  readonly waitMs: number | undefined;
  readonly retentionMs: number | undefined;
  /** Newest first; what is stored is sealed under the first. None: stored as it is. */
  readonly encryptionKeys: readonly EncryptionKey[];
  /** Newest first; new fingerprints are made with the first. None: plain digests. */
  readonly fingerprintSecrets: readonly FingerprintSecret[];
  /** Version of all three operations; a deploy whose code cannot go on with what older code left raises it. */
  readonly operationVersion: number;
  /** Where the relay sends its messages as signed webhooks; `undefined`: it names them on standard error. */
  readonly webhookUrl: string | undefined;
  /** Whether the API process also runs sweeper and relay. */
  readonly worker: boolean;
  /** Crash points, delays and their routes. Never where real money moves. */
  readonly lab: boolean;
}

/** Reads the environment. Raises an error that names the variable and what it may be. */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  return {
    port: wholeNumber(env, "PORT", 65_535) ?? 4000,
    pspPort: wholeNumber(env, "PSP_PORT", 65_535) ?? 4001,
    dataDir: resolve(env.ONCEKEY_DATA_DIR || join(import.meta.dirname, "..", "..", ".data")),
    databaseUrl: env.DATABASE_URL || undefined,
    pspUrl: env.PSP_URL?.replace(/\/+$/, "") || undefined,
    pspRecover: oneOf(env, "ONCEKEY_PSP_RECOVER", RECOVER_FORMS) ?? "dedupes",
    profile: env.ONCEKEY_PROFILE || undefined,
    leaseMs: wholeNumber(env, "ONCEKEY_LEASE_MS"),
    waitMs: wholeNumber(env, "ONCEKEY_WAIT_MS"),
    retentionMs: wholeNumber(env, "ONCEKEY_RETENTION_MS"),
    encryptionKeys: keyRing(env, "ONCEKEY_ENCRYPTION_KEYS").map(({ id, bytes }) => ({ id, key: bytes })),
    fingerprintSecrets: keyRing(env, "ONCEKEY_FINGERPRINT_SECRETS").map(({ id, bytes }) => ({ id, secret: bytes })),
    operationVersion: Math.max(1, wholeNumber(env, "ONCEKEY_OPERATION_VERSION") ?? 1),
    webhookUrl: httpUrl(env, "ONCEKEY_WEBHOOK_URL"),
    worker: oneOf(env, "ONCEKEY_WORKER", ["0", "1"]) !== "0",
    lab: oneOf(env, "ONCEKEY_LAB", ["0", "1"]) === "1",
  };
}

function wholeNumber(env: NodeJS.ProcessEnv, name: string, most = Number.MAX_SAFE_INTEGER): number | undefined {
  const text = env[name];
  if (text === undefined || text === "") return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= most) return value;
  throw new Error(`${name} must be a whole number from 0 to ${most}. Nothing was started.`);
}

function httpUrl(env: NodeJS.ProcessEnv, name: string): string | undefined {
  const text = env[name];
  if (text === undefined || text === "") return undefined;
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new Error(`${name} must be an http: or https: URL. Nothing was started.`);
}

function oneOf<Choice extends string>(
  env: NodeJS.ProcessEnv,
  name: string,
  choices: readonly Choice[],
): Choice | undefined {
  const text = env[name];
  if (text === undefined || text === "") return undefined;
  const choice = choices.find((one) => one === text);
  if (choice !== undefined) return choice;
  throw new Error(`${name} must be one of ${choices.join(", ")}. Nothing was started.`);
}
