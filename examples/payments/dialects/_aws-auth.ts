import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { Request } from "express";

/** How far a client's clock may be off, in milliseconds (AWS Signature Version 4: 15 minutes). */
const SKEW_MS = 15 * 60_000;

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/,\s]+)\/(\d{8})\/([^/,\s]+)\/([^/,\s]+)\/aws4_request,\s*SignedHeaders=([^,\s]+),\s*Signature=([0-9a-f]{64})$/;

/** The secret access key of this example's access keys, which are the API's tokens. A real service looks it up. */
function secretOf(accessKeyId: string): string {
  return `${accessKeyId}_secret`;
}

/**
 * The access key id of a request whose AWS Signature Version 4 is right for its method, target, signed headers and body
 * (`rawBody`); `undefined` for every other. Which Region and service it was signed for is not looked at: this process
 * stands for all of them.
 */
export function signedBy(request: Request, nowMs = Date.now()): string | undefined {
  const [, accessKeyId = "", day = "", region = "", service = "", names = "", signature = ""] =
    AUTHORIZATION.exec(request.get("authorization") ?? "") ?? [];
  const signedHeaders = names.split(";");
  const time = request.get("x-amz-date") ?? "";
  if (!mustBeSigned(request).every((name) => signedHeaders.includes(name))) return undefined;
  if (!time.startsWith(day) || !(Math.abs(nowMs - instantOf(time)) <= SKEW_MS)) return undefined;
  const scope = `${day}/${region}/${service}/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", time, scope, sha256(canonicalRequest(request, signedHeaders))].join("\n");
  const key = [day, region, service, "aws4_request"].reduce<string | Buffer>(hmac, `AWS4${secretOf(accessKeyId)}`);
  return timingSafeEqual(hmac(key, text), Buffer.from(signature, "hex")) ? accessKeyId : undefined;
}

/** AWS's rule: the host, and every `x-amz-` header that is there (`x-amz-target` says what is asked). */
function mustBeSigned({ headers }: Request): string[] {
  return ["host", "x-amz-date", ...Object.keys(headers).filter((name) => name.startsWith("x-amz-"))];
}

/** `20261130T150045Z` in milliseconds since 1970. */
function instantOf(time: string): number {
  return Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
}

function canonicalRequest(request: Request, signedHeaders: readonly string[]): string {
  // All that comes after the first question mark is the query, further ones included.
  const [, path = "", query = ""] = /^([^?]*)\??(.*)$/s.exec(request.originalUrl) ?? [];
  const headers = signedHeaders.map((name) => `${name}:${(request.get(name) ?? "").trim().replace(/ +/g, " ")}\n`);
  const { rawBody = "" } = request as { rawBody?: Uint8Array };
  return [request.method, path, sorted(query), headers.join(""), signedHeaders.join(";"), sha256(rawBody)].join("\n");
}

/** As clients write a query, encoded already; a name alone gets its `=`. */
function sorted(query: string): string {
  const pairs = query.split("&").filter((pair) => pair !== "");
  return pairs
    .map((pair) => (pair.includes("=") ? pair : `${pair}=`))
    .sort()
    .join("&");
}

const sha256 = (bytes: string | Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();
