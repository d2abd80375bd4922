import { OncekeyError } from "../core/errors.ts";
import type { OncekeyEvent } from "./event.ts";
import type { Settings } from "./settings.ts";

/**
 * Told of every event, at once and in the flow of the request that it tells of (so that context such as the active span is
 * there). Must not block. A promise that it gives is not awaited; what it throws or rejects with goes to `onError`, the
 * first time.
 */
export type Observer = (event: OncekeyEvent) => unknown;

/** Tells every observer. Never raises, never waits. */
export type Emit = (event: OncekeyEvent) => void;

/** The emitter of an instance; `null` where nobody listens, and then no event is ever made. Raises `oncekey_config_invalid`. */
export function emitterOf({ observe, onError }: Pick<Settings, "observe" | "onError">): Emit | null {
  const observers: readonly Observer[] = typeof observe === "function" ? [observe] : observe;
  if (!Array.isArray(observers) || !observers.every((observer) => typeof observer === "function")) {
    throw new OncekeyError(
      "oncekey_config_invalid",
      "observe is a function that takes events, or a list of them. Nothing was started.",
    );
  }
  if (observers.length === 0) return null;
  const tells = observers.map((observer) => guarded(observer, onError));
  return (event) => {
    for (const tell of tells) tell(event);
  };
}

function isThenable(given: unknown): given is PromiseLike<unknown> {
  return typeof (given as PromiseLike<unknown> | null | undefined)?.then === "function";
}

/** One observer that can break nothing: an exporter that is down must not fill the log with one line for each event. */
function guarded(observer: Observer, onError: Settings["onError"]): Emit {
  let told = false;
  const failed = (error: unknown) => {
    if (told) return;
    told = true;
    onError(error, { operation: "observe", at: "an observer (told once)" });
  };
  return (event) => {
    try {
      const given = observer(event);
      // Adopted, whatever kind of promise it is: one that rejects unheard would end the process.
      if (isThenable(given)) Promise.resolve(given).catch(failed);
    } catch (error) {
      failed(error);
    }
  };
}
