import type { Settings } from "../engine/settings.ts";
import { type StoringTurns, storingTurns } from "./storing-turns.ts";

/** What all answers that are recorded at a time hold in memory together, for one instance. */
export interface RecordingBudget {
  /** In use now. */
  readonly heldBytes: number;
  /** The most that was in use at a time. */
  readonly peakBytes: number;
  /** Takes so many bytes, or none and answers `false`. */
  take(bytes: number): boolean;
  give(bytes: number): void;
}

/** What a recording may take. */
export interface RecordingLimits {
  /** The longest answer that is recorded. */
  readonly maxAnswerBytes: number;
  readonly budget: RecordingBudget;
}

/** A budget of its own. */
export function recordingBudget(limitBytes: number): RecordingBudget {
  let heldBytes = 0;
  let peakBytes = 0;
  return {
    get heldBytes() {
      return heldBytes;
    },
    get peakBytes() {
      return peakBytes;
    },
    take(bytes) {
      if (heldBytes + bytes > limitBytes) return false;
      heldBytes += bytes;
      peakBytes = Math.max(peakBytes, heldBytes);
      return true;
    },
    give(bytes) {
      heldBytes -= bytes;
    },
  };
}

/** The limits of one instance, and the turns in which its recorded answers are stored. */
export interface InstanceLimits extends RecordingLimits {
  readonly storing: StoringTurns;
}

const limitsOf = new WeakMap<object, InstanceLimits>();

/** The limits of the instance that has these settings: one budget, however many bindings there are. */
export function recordingLimits(settings: Pick<Settings, "maxAnswerBytes" | "maxRecordingBytes">): InstanceLimits {
  const known = limitsOf.get(settings);
  if (known !== undefined) return known;
  const { maxAnswerBytes, maxRecordingBytes } = settings;
  const limits = { maxAnswerBytes, budget: recordingBudget(maxRecordingBytes), storing: storingTurns() };
  limitsOf.set(settings, limits);
  return limits;
}
