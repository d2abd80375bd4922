import { type ClientErrorCode, codes } from "../src/core/errors.ts";
import { respond } from "../src/core/response.ts";
import { createOncekey } from "../src/http/create-oncekey.ts";
import { openApiOperation } from "../src/http/openapi.ts";
import { memoryStore } from "../src/stores/memory/index.ts";
import { markdownTable } from "./markdown-table.ts";

interface PublishedProblem {
  readonly code: ClientErrorCode;
  readonly type: string;
  readonly status: number;
  readonly retry: string;
  readonly retryAfter: boolean;
}

/** What is published of each problem, as a description of an operation lists them. */
function publishedProblems(): readonly PublishedProblem[] {
  const once = createOncekey({ store: memoryStore(), refuseLateRetries: true });
  const operation = once.transaction({ name: "any", version: 1, run: async () => respond(204, null) });
  const described = openApiOperation(operation, { authorize: true });
  return (described["x-idempotency"] as { readonly problems: readonly PublishedProblem[] }).problems;
}

/** The table at the head of each page of docs/problems/: page → table. */
export function problemHeads(): ReadonlyMap<string, string> {
  const head = ["`type`", "status", "`retry`", "`Retry-After`", "title"];
  return new Map(
    publishedProblems().map(({ code, type, status, retry, retryAfter }) => [
      `docs/problems/${code}.md`,
      markdownTable(head, [[`\`${type}\``, String(status), retry, retryAfter ? "yes" : "no", codes[code].title]]),
    ]),
  );
}
