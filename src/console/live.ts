import type { OpenStream } from "./exchange.ts";
import type { ConsoleParts } from "./parts.ts";
import { Refusal } from "./refusal.ts";
import { overviewOf } from "./routes/overview.ts";
import { STEP_MS } from "./series.ts";
import type { Who } from "./sessions.ts";

/** Pages that are told of what happens as it happens. */
export interface Live {
  /** Adds one. Raises 429 where the session has too many already. */
  open(who: Who, stream: OpenStream): void;
  /** Whether that session may open another. */
  hasRoom(who: Who): boolean;
  close(): void;
}

/** How much may be open. */
export interface LiveLimits {
  readonly perSession: number;
  readonly atAll: number;
}

interface Listener {
  readonly who: Who;
  readonly stream: OpenStream;
  beats: number;
}

/** A comment so often, in steps, keeps what is between from cutting a quiet connection. */
const BEAT_STEPS = 3;

/**
 * Looks once for each tenant in each step, however many pages are open, and not at all where none is. `isOver`: sessions
 * that have ended.
 */
export function createLive(parts: ConsoleParts, limits: LiveLimits, isOver: (who: Who) => boolean): Live {
  const listeners = new Set<Listener>();
  let timer: NodeJS.Timeout | null = null;
  const stop = () => {
    if (timer !== null) clearInterval(timer);
    timer = null;
  };
  const leave = (listener: Listener) => {
    listeners.delete(listener);
    if (listeners.size === 0) stop();
  };
  const step = async () => {
    for (const listener of listeners) if (isOver(listener.who)) listener.stream.end();
    const tenants = new Set([...listeners].map(({ who }) => who.operator.tenant));
    for (const tenant of tenants) await tellTenant(parts, listeners, tenant);
  };
  const hasRoom: Live["hasRoom"] = ({ session }) => {
    const own = [...listeners].filter(({ who }) => who.session === session).length;
    return own < limits.perSession && listeners.size < limits.atAll;
  };
  return {
    hasRoom,
    open(who, stream) {
      if (!hasRoom(who)) throw new Refusal(429, "console_too_many", "Too many pages listen already. Close one.");
      const listener: Listener = { who, stream, beats: 0 };
      listeners.add(listener);
      stream.signal.addEventListener("abort", () => leave(listener), { once: true });
      if (stream.signal.aborted) return leave(listener);
      stream.write(`retry: ${STEP_MS}\n\n`);
      // Whoever opens a page sees numbers at once.
      void tellTenant(parts, new Set([listener]), who.operator.tenant).catch(() => {});
      timer ??= setInterval(() => void step().catch(() => {}), STEP_MS).unref();
    },
    close() {
      for (const { stream } of [...listeners]) stream.end();
      listeners.clear();
      stop();
    },
  };
}

async function tellTenant(parts: ConsoleParts, listeners: ReadonlySet<Listener>, tenant: string | null): Promise<void> {
  const overview = await overviewOf(parts, tenant).catch(() => null);
  const point = parts.source() === "none" ? null : parts.series.last(tenant);
  for (const listener of listeners) {
    if (listener.who.operator.tenant !== tenant) continue;
    listener.beats += 1;
    if (listener.beats % BEAT_STEPS === 0) listener.stream.write(": beat\n\n");
    if (point !== null) listener.stream.write(eventText("point", point));
    if (overview !== null) listener.stream.write(eventText("overview", overview));
  }
}

function eventText(event: string, data: unknown): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
