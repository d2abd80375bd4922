import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { HeaderLine, Reply } from "./answer.ts";

/** One request as it goes out. */
export interface Outgoing {
  readonly url: URL;
  readonly method: string;
  /** Lines as they are sent: two of one name stay two lines. Values are latin-1: one character, one byte. */
  readonly headers: readonly HeaderLine[];
  readonly body: Buffer | null;
}

/** Where a connection is cut: within the body (behind its first half), or when the whole request is out. */
export type Cut = "sending" | "waiting";

/** Longest answer that is read, in bytes. */
const LONGEST_ANSWER = 16 * 1024 * 1024;

/** How many bytes answers that come at once may have together: they are all held until they are judged. */
export interface Budget {
  leftBytes: number;
}

/** Gives what the answers to one storm may take: some of the longest, or fifty that are as long as results are. */
export const stormBudget = (): Budget => ({ leftBytes: 8 * LONGEST_ANSWER });

/** What ends a request before its answer, besides its time. */
export interface Limits {
  readonly signal?: AbortSignal | undefined;
  readonly budget?: Budget | undefined;
}

/**
 * Sends one request on a connection of its own, follows no redirect, and never rejects: what breaks is a reply of its
 * kind. Only the URL's host is asked; proxies of the environment are not used.
 */
export function exchange(outgoing: Outgoing, timeoutMs: number, { signal, budget }: Limits = {}): Promise<Reply> {
  const sentAtMs = performance.now();
  return new Promise((resolve) => {
    const none = (why: string) => resolve({ kind: "none", why });
    const request = open(outgoing, (response) => {
      const chunks: Buffer[] = [];
      let length = 0;
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        length += chunk.length;
        if (budget !== undefined) budget.leftBytes -= chunk.length;
        if (length > LONGEST_ANSWER || (budget?.leftBytes ?? 0) < 0) request.destroy(coded("too_long"));
      });
      response.once("error", (error) => none(codeOf(error)));
      response.once("end", () => {
        clearTimeout(limit);
        const bytes = Buffer.concat(chunks);
        const status = response.statusCode ?? 0;
        const times = { sentAtMs, doneAtMs: performance.now(), secrets: () => secretsOf(outgoing) };
        resolve({ kind: "answer", status, headers: linesOf(response), bytes, ...times });
      });
    });
    const limit = setTimeout(() => request.destroy(coded("timeout")), timeoutMs);
    const release = onAbort(signal, () => request.destroy(coded("aborted")));
    request.once("error", (error) => none(codeOf(error)));
    request.once("close", () => {
      clearTimeout(limit);
      release();
      none("closed");
    });
    request.end(outgoing.body ?? undefined);
  });
}

/** Sends a part of a request, or all of it, and cuts the connection. Resolves when it is cut, whatever came back. */
export function cutOff(outgoing: Outgoing, cut: Cut, timeoutMs: number, { signal }: Limits = {}): Promise<void> {
  return new Promise((resolve) => {
    const request = open(outgoing, (response) => void response.resume());
    const limit = setTimeout(() => request.destroy(), timeoutMs);
    const release = onAbort(signal, () => request.destroy());
    request.once("error", () => {});
    request.once("close", () => {
      clearTimeout(limit);
      release();
      resolve();
    });
    const body = outgoing.body ?? Buffer.alloc(0);
    const destroy = () => void request.destroy();
    if (cut === "sending") request.write(body.subarray(0, Math.ceil(body.length / 2)), destroy);
    else request.end(body, destroy);
  });
}

/** Calls it once the signal is aborted, at once where it is; returns what takes that back. */
function onAbort(signal: AbortSignal | undefined, call: () => void): () => void {
  if (signal?.aborted === true) call();
  signal?.addEventListener("abort", call, { once: true });
  return () => signal?.removeEventListener("abort", call);
}

function open({ url, method, headers, body }: Outgoing, onResponse: (response: IncomingMessage) => void) {
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  const length: HeaderLine[] = body === null && method === "GET" ? [] : [["Content-Length", String(body?.length ?? 0)]];
  const lines: HeaderLine[] = [["Host", url.host], ...headers, ...length, ["Connection", "close"]];
  return send(url, { method, agent: false, headers: lines.flat() }, onResponse);
}

/** What was sent, whole and word for word: a report must not repeat any of it. */
function secretsOf({ headers, body }: Outgoing): string[] {
  const values = headers.flatMap(([, value]) => [value, ...value.split(/[\s"=;,]+/)]);
  return [...values, body?.toString("latin1") ?? ""].filter((text) => text !== "");
}

function linesOf({ rawHeaders }: IncomingMessage): HeaderLine[] {
  const lines: HeaderLine[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) lines.push([rawHeaders[at] ?? "", rawHeaders[at + 1] ?? ""]);
  return lines;
}

function coded(code: string): Error {
  return Object.assign(new Error(code), { code });
}

/** The system's code alone: messages may name hosts and paths. */
function codeOf(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}
