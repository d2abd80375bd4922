import { createRequire } from "node:module";
import * as common from "@nestjs/common";
import * as core from "@nestjs/core";
import { ExpressAdapter } from "@nestjs/platform-express";
import { FastifyAdapter } from "@nestjs/platform-fastify";
import * as rxjs from "rxjs";
import type { NestPeer } from "./nest.ts";

// Nest 11 and 12 cannot be installed side by side, so the older one lives in a project of its own.
const require11 = createRequire(new URL("../../peers/nest11/package.json", import.meta.url));

type Version = Pick<NestPeer, "common" | "core" | "rxjs" | "version"> & {
  readonly Express: typeof ExpressAdapter;
  readonly Fastify: typeof FastifyAdapter;
};

const twelve: Version = { version: 12, common, core, rxjs, Express: ExpressAdapter, Fastify: FastifyAdapter };

const eleven = (): Version => ({
  version: 11,
  common: require11("@nestjs/common"),
  core: require11("@nestjs/core"),
  rxjs: require11("rxjs"),
  Express: require11("@nestjs/platform-express").ExpressAdapter,
  Fastify: require11("@nestjs/platform-fastify").FastifyAdapter,
});

/** The name of each row → Nest of that version on that platform. */
export const nestPeers: Readonly<Record<string, () => NestPeer>> = {
  "nest 12 on express": () => onExpress(twelve),
  "nest 12 on fastify": () => onFastify(twelve),
  "nest 11 on express": () => onExpress(eleven()),
  "nest 11 on fastify": () => onFastify(eleven()),
};

const onExpress = ({ Express, ...version }: Version): NestPeer => ({
  ...version,
  platform: "express",
  adapter: () => new Express() as never,
  parsing: () => new Express() as never,
});

const onFastify = ({ Fastify, ...version }: Version): NestPeer => ({
  ...version,
  platform: "fastify",
  adapter: () => unparsed(new Fastify({ forceCloseConnections: true })) as never,
  parsing: () => new Fastify({ forceCloseConnections: true }) as never,
});

/** Leaves every body to Oncekey, as its documentation shows: exact bytes, whatever they are. */
function unparsed(adapter: FastifyAdapter): FastifyAdapter {
  const instance = adapter.getInstance();
  instance.removeAllContentTypeParsers();
  const limits = { parseAs: "buffer", bodyLimit: 16_777_216 } as const;
  instance.addContentTypeParser("*", limits, (request, rawBody, done) => {
    Object.assign(request, { rawBody });
    done(null, undefined);
  });
  return adapter;
}
