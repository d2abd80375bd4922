import type { RunEnd } from "../engine/event.ts";
import { type Counted, ENDS, type Series, STEP_MS } from "./series.ts";

/** Fills a series from another process's metrics, for as long as it runs. */
export interface Scraper {
  /** Reads once. Never rejects: a page that is away is tried again at the next step. */
  once(): Promise<void>;
  /** Reads in every step, until `stop`. */
  start(): void;
  stop(): void;
}

const TIMEOUT_MS = 3_000;
const MOST_BYTES = 8_388_608;

/** One line of the page that counts something of ours. */
interface Sample {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
  /** Tells it from all others. */
  readonly line: string;
}

/**
 * Reads a page of Prometheus metrics (text form) as `oncekey/prometheus` and the OpenTelemetry exporter name them, and counts
 * what has grown since the last reading. `url` is the operator's own.
 */
export function createScraper(url: string, series: Series): Scraper {
  const last = new Map<string, number>();
  let timer: NodeJS.Timeout | null = null;
  let isFirst = true;
  const once = async () => {
    const text = await page(url).catch(() => null);
    if (text === null) return;
    for (const sample of samplesOf(text)) {
      const before = last.get(sample.line) ?? 0;
      last.set(sample.line, sample.value);
      // Less than before: the process has begun anew.
      const grown = sample.value >= before ? sample.value - before : sample.value;
      if (!isFirst && grown > 0) counted(series, sample, grown);
    }
    isFirst = false;
  };
  return {
    once,
    start() {
      void once();
      timer ??= setInterval(() => void once(), STEP_MS).unref();
    },
    stop() {
      if (timer !== null) clearInterval(timer);
      timer = null;
    },
  };
}

async function page(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS), headers: { accept: "text/plain" } });
  if (!response.ok || response.body === null) throw new Error("The page of metrics did not answer with 200.");
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > MOST_BYTES) throw new Error("The page of metrics is too long.");
  }
  return text;
}

const OURS =
  /^(oncekey_requests_total|oncekey_wait_duration_seconds_count|oncekey_request_duration_seconds_bucket)\{(.*)\} (\S+)/;
const LABEL = /([a-z_]+)="((?:[^"\\]|\\.)*)"/g;

function samplesOf(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split("\n")) {
    const [, name, labels = "", value = ""] = OURS.exec(line) ?? [];
    if (name === undefined || Number.isNaN(Number(value))) continue;
    const pairs = [...labels.matchAll(LABEL)].map(([, label = "", given = ""]) => [label, unescaped(given)] as const);
    samples.push({ name, labels: new Map(pairs), value: Number(value), line: `${name}{${labels}}` });
  }
  return perBucket(samples);
}

/** A bucket counts what the smaller ones count, too: each is made to count its own. */
function perBucket(samples: readonly Sample[]): Sample[] {
  const below = new Map<string, number>();
  return samples.map((sample) => {
    if (!sample.name.endsWith("_bucket")) return sample;
    const group = sample.line.replace(/,?le="[^"]*"/, "");
    const value = sample.value - (below.get(group) ?? 0);
    below.set(group, sample.value);
    return { ...sample, value: Math.max(0, value) };
  });
}

const unescaped = (text: string) => text.replace(/\\(.)/g, (_, char: string) => (char === "n" ? "\n" : char));

function counted(series: Series, { name, labels }: Sample, times: number): void {
  const tenant = labels.get("tenant");
  for (const whose of tenant === undefined ? [null] : [null, tenant]) {
    if (name === "oncekey_requests_total") series.count(whose, whatOf(labels), times);
    else if (name === "oncekey_wait_duration_seconds_count") series.count(whose, "waited", times);
    else series.countDurations(whose, boundMs(labels.get("le")), times);
  }
}

function whatOf(labels: ReadonlyMap<string, string>): Counted {
  const result = labels.get("result") ?? "";
  if (result === "completed" && Number(labels.get("status")) >= 400) return "failed";
  return Object.hasOwn(ENDS, result) ? ENDS[result as RunEnd["kind"]] : "errors";
}

/** The upper bound of a bucket; beyond the last one nobody knows: a minute. */
function boundMs(bound: string | undefined): number {
  const seconds = Number(bound);
  return Number.isFinite(seconds) ? seconds * 1_000 : 60_000;
}
