import { createRequire } from "node:module";
import express from "express";
import { describe, expect, it } from "vitest";
import { nestPeers } from "./adapter-hosts/nest-peers.ts";
import { captureRow } from "./capture/compare.ts";
import { expressCapture } from "./capture/express.ts";
import { fastifyCapture } from "./capture/fastify.ts";
import { h3Capture } from "./capture/h3.ts";
import { honoCapture } from "./capture/hono.ts";
import { koaCapture } from "./capture/koa.ts";
import { lambdaCapture } from "./capture/lambda.ts";
import { nestCapture } from "./capture/nest.ts";
import { nextCapture } from "./capture/next.ts";
import { nodeCapture } from "./capture/node.ts";
import { WAYS } from "./capture/ways.ts";
import { fetchCapture } from "./capture/web.ts";

// The alias has no types of its own.
const express4 = createRequire(import.meta.url)("express4") as typeof express;

describe("the capture matrix", () => {
  it("has more than forty ways of answering", () => {
    expect(new Set(WAYS).size).toBeGreaterThanOrEqual(40);
  });
});

captureRow(nodeCapture);
captureRow(expressCapture("express 5", express));
captureRow(expressCapture("express 4", express4));
captureRow(fastifyCapture);
captureRow(koaCapture);
captureRow(honoCapture);
captureRow(fetchCapture);
captureRow(nextCapture);
captureRow(h3Capture);
captureRow(lambdaCapture);
for (const peer of Object.values(nestPeers)) captureRow(nestCapture(peer()));
