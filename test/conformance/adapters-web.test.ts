import { adapterSuite } from "oncekey/testing";
import { describe, it } from "vitest";
import { h3Host } from "./adapter-hosts/h3.ts";
import { lambdaHost } from "./adapter-hosts/lambda.ts";
import { nextHost } from "./adapter-hosts/next.ts";

const runner = { describe, it };

adapterSuite(runner, "next 16", nextHost);
adapterSuite(runner, "h3 2", h3Host);
adapterSuite(runner, "lambda, payload format 2.0", () => lambdaHost("2.0"));
adapterSuite(runner, "lambda, payload format 1.0", () => lambdaHost("1.0"), {
  limits: {
    "refuses bodies that cannot be read in one way only, and keeps the key free":
      "one row is a malformed query, of which format 1.0 shows decoded pairs only; its bodies are read as those of format 2.0",
  },
});
