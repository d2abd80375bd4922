import { createRequire } from "node:module";
import express from "express";
import { adapterSuite } from "oncekey/testing";
import { describe, it } from "vitest";
import { expressHost } from "./adapter-hosts/express.ts";
import { fastifyHost } from "./adapter-hosts/fastify.ts";
import { fetchHost } from "./adapter-hosts/fetch.ts";
import { honoHost } from "./adapter-hosts/hono.ts";

const runner = { describe, it };
// The alias has no types of its own.
const express4 = createRequire(import.meta.url)("express4") as typeof express;

adapterSuite(runner, "express 5", () => expressHost(express));
adapterSuite(runner, "express 4", () => expressHost(express4));
adapterSuite(runner, "fastify 5", fastifyHost);
adapterSuite(runner, "hono", honoHost);
adapterSuite(runner, "fetch", fetchHost);
