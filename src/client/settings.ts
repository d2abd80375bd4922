import { SubmissionError } from "./error.ts";
import type { ClientOptions } from "./options.ts";
import { sleep } from "./waiting.ts";

/** The client's options with their defaults. */
export type Settings = ClientOptions & Required<Omit<ClientOptions, Optional>>;

type Optional = "fetch" | "onEvent" | "firstSentHeader" | "attemptHeaders";

const durations = {
  retryWindowMs: 600_000,
  attemptTimeoutMs: 30_000,
  minPauseMs: 500,
  maxPauseMs: 30_000,
  keepResultMs: 86_400_000,
};

/** Fills in the defaults. Raises `oncekey_config_invalid`; `TypeError` for a name that no header can have. */
export function settingsOf(options: ClientOptions): Settings {
  const settings: Settings = {
    ...durations,
    keyHeader: "Idempotency-Key",
    keyVersion: 4,
    now: Date.now,
    monotonicMs: () => performance.now(),
    pause: sleep,
    random: Math.random,
    ...options,
  };
  const { keyHeader, firstSentHeader = keyHeader, storage } = settings;
  for (const name of Object.keys(durations)) {
    const ms = settings[name as keyof typeof durations];
    // Timers hold 31 bits; a longer one would fire at once.
    if (!(ms > 0 && ms < 2 ** 31)) invalid(name);
  }
  if (!storage?.exclusively) invalid("storage");
  // The platform's own error names what is no header.
  new Headers({ [keyHeader]: "", [firstSentHeader]: "" });
  return settings;
}

function invalid(option: string): never {
  throw new SubmissionError("oncekey_config_invalid", `createClient: ${option} cannot be used.`);
}
