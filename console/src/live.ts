import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { type Overview, overview, type Point, type Series, series } from "./data/overview.ts";

/** How the figures arrive: by events, by asking again and again, or not at all. */
export type Mode = "connecting" | "live" | "polling" | "lost";

/** The figures that change while one looks. */
export interface Live {
  readonly mode: Mode;
  readonly overview: Overview | null;
  readonly points: readonly Point[];
  readonly source: Series["source"] | null;
  readonly stepMs: number;
}

const EMPTY: Live = { mode: "connecting", overview: null, points: [], source: null, stepMs: 5_000 };
const POLL_MS = 5_000;
/** An hour of steps. */
const MOST_POINTS = 720;
/** A refused stream (too many of them are open) is asked for again after this many polls. */
const POLLS_BETWEEN_STREAMS = 12;

/** The live figures, for the pages below. */
export const LiveContext = createContext<Live>(EMPTY);

/** The live figures. */
export const useLive = (): Live => useContext(LiveContext);

/** Points by their time, the later of two for one step winning; the last hour. */
function joined(known: readonly Point[], fresh: readonly Point[]): readonly Point[] {
  const byTime = new Map([...known, ...fresh].map((point) => [point.at, point]));
  return [...byTime.values()].sort((a, b) => a.at.localeCompare(b.at)).slice(-MOST_POINTS);
}

/** Follows the figures while the page is open and somebody is signed in. */
export function useFollowing(): Live {
  const [live, setLive] = useState(EMPTY);
  useEffect(() => follow((change) => setLive((was) => ({ ...was, ...change(was) }))), []);
  return live;
}

type Change = (change: (was: Live) => Partial<Live>) => void;

/** Server-sent events; while there are none, the same by polling. The function ends both. */
function follow(change: Change): () => void {
  let stream: EventSource | null = null;
  let polls = 0;
  let ended = false;
  let timer = 0;
  const open = () => {
    stream?.close();
    const opened = openStream(change);
    stream = opened;
    // What happened while there was no stream.
    opened.addEventListener("open", () => void catchUp(change, "live"));
  };
  const tick = async () => {
    const isLive = stream?.readyState === EventSource.OPEN;
    if (!isLive && !document.hidden) {
      await catchUp(change, "polling");
      polls += 1;
      if (stream?.readyState === EventSource.CLOSED && polls % POLLS_BETWEEN_STREAMS === 0) open();
    }
    if (!ended) timer = window.setTimeout(() => void tick(), POLL_MS);
  };
  void catchUp(change, "connecting").then(() => {
    if (ended) return;
    open();
    timer = window.setTimeout(() => void tick(), POLL_MS);
  });
  return () => {
    ended = true;
    clearTimeout(timer);
    stream?.close();
  };
}

function openStream(change: Change): EventSource {
  const stream = new EventSource("api/stream");
  stream.addEventListener("point", (event) => {
    const point = JSON.parse(event.data) as Point;
    change((was) => ({
      mode: "live",
      // The first request came after the page asked for the hour before.
      source: was.source === "none" ? "process" : was.source,
      points: joined(was.points, [point]),
    }));
  });
  stream.addEventListener("overview", (event) => {
    const fresh = JSON.parse(event.data) as Overview;
    change(() => ({ mode: "live", overview: fresh }));
  });
  return stream;
}

async function catchUp(change: Change, mode: Mode): Promise<void> {
  try {
    const [fresh, seen] = await Promise.all([overview(), series(null)]);
    const { points, source, stepMs } = seen;
    change((was) => ({ mode, overview: fresh, source, stepMs, points: joined(was.points, points) }));
  } catch {
    change(() => ({ mode: "lost" }));
  }
}
