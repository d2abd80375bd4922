import { AsyncLocalStorage } from "node:async_hooks";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import express, { type NextFunction, type Request, type Response, type Router } from "express";
import { crashPoints } from "oncekey/testing";
import { publishJson } from "./ownership.ts";
import type { Queryable } from "./payments.ts";
import { sendJson, sendProblem } from "./problem.ts";
import type { Settings } from "./settings.ts";

/** Runs a named piece of business code. */
export type Step = <T>(name: string, run: () => Promise<T>) => Promise<T>;

/** What the lab hooks into the example. */
export interface Lab {
  /** Wraps business code: a crash point before and after it, and the delay that a request asked for. */
  readonly step: Step;
  /** Called by Oncekey between any two effects of its own. */
  readonly onPoint: (point: string) => Promise<void>;
  readonly isRevoked: (token: string) => boolean;
  /** Middleware: reads `X-Lab-Crash` and `X-Lab-Delay-Ms`. */
  readonly watch: (request: Request, response: Response, next: NextFunction) => void;
  readonly routes: ((db: Queryable) => Router) | null;
}

/** The lab's equipment, or (without `ONCEKEY_LAB=1`) none of it. */
export function openLab(settings: Settings): Lab {
  return settings.lab ? activeLab(settings) : CLOSED_LAB;
}

const CLOSED_LAB: Lab = {
  step: (_name, run) => run(),
  onPoint: async () => undefined,
  isRevoked: () => false,
  watch: (_request, _response, next) => next(),
  routes: null,
};

/** The business steps of the operations, see operations/. */
const BUSINESS_STEPS = ["invoice_insert", "charge_insert", "charge_settle", "refund_insert", "refund_commit"];
const MESSAGES = ["invoice.created", "charge.settled"];

/** Every name that `X-Lab-Crash` takes, in the order a request passes them. */
function allCrashPoints({ pspRecover }: Settings): string[] {
  const around = (name: string) => [`${name}:before`, `${name}:after`];
  const intent = pspRecover !== "dedupes";
  const charge = [{ phase: "charge_created" }, { call: "authorize", intent }, { call: "capture", intent }];
  const points = [
    ...crashPoints({ runKind: "transaction" }),
    ...crashPoints({ runKind: "phases", steps: charge }),
    ...crashPoints({ runKind: "capture" }),
    ...BUSINESS_STEPS.flatMap(around),
    ...MESSAGES.flatMap((topic) => around(`send:${topic}`)),
  ];
  return [...new Set(points)];
}

interface Experiment {
  readonly crashAt: string | undefined;
  delayMs: number;
}

function activeLab(settings: Settings): Lab {
  mkdirSync(settings.dataDir, { recursive: true });
  const revokedFile = join(settings.dataDir, "lab-revoked.json");
  const points = allCrashPoints(settings);
  const running = new AsyncLocalStorage<Experiment>();
  const onPoint = async (point: string): Promise<void> => {
    if (running.getStore()?.crashAt !== point) return;
    process.kill(process.pid, "SIGKILL");
    // The signal arrives in a moment; nothing may happen in between.
    await new Promise(() => undefined);
  };
  return {
    onPoint,
    async step(name, run) {
      await onPoint(`${name}:before`);
      await delayOnce(running.getStore());
      const value = await run();
      await onPoint(`${name}:after`);
      return value;
    },
    isRevoked: (token) => revokedTokens(revokedFile).includes(token),
    watch(request, response, next) {
      const delayMs = Number(request.get("x-lab-delay-ms") ?? "0");
      const crashAt = request.get("x-lab-crash");
      if (!Number.isSafeInteger(delayMs) || delayMs < 0) {
        return sendProblem(response, 400, { code: "lab_invalid", title: "X-Lab-Delay-Ms must be a whole number" });
      }
      if (crashAt !== undefined && !points.includes(crashAt)) {
        return sendProblem(response, 400, {
          code: "lab_invalid",
          title: "No such crash point; see GET /lab/crash-points",
        });
      }
      running.run({ crashAt, delayMs }, next);
    },
    routes: (db) => labRoutes(db, points, revokedFile),
  };
}

/** The request's delay belongs to its first business step. */
async function delayOnce(experiment: Experiment | undefined): Promise<void> {
  if (experiment === undefined || experiment.delayMs === 0) return;
  const { delayMs } = experiment;
  experiment.delayMs = 0;
  await sleep(delayMs);
}

/** Read anew each time: every API of the data directory knows a revocation at once, and after a restart too. */
function revokedTokens(file: string): string[] {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return [];
  }
}

function labRoutes(db: Queryable, points: readonly string[], revokedFile: string): Router {
  const routes = express.Router();
  const change = (apply: (revoked: string[], token: string) => string[]) => (request: Request, response: Response) => {
    const token: unknown = request.body?.token;
    if (typeof token !== "string") {
      return sendProblem(response, 400, { code: "lab_invalid", title: 'Expected {"token": …}' });
    }
    publishJson(revokedFile, apply(revokedTokens(revokedFile), token));
    sendJson(response, 200, { ok: true });
  };
  routes.post(
    "/revoke",
    express.json(),
    change((revoked, token) => [...new Set([...revoked, token])]),
  );
  routes.post(
    "/restore",
    express.json(),
    change((revoked, token) => revoked.filter((one) => one !== token)),
  );
  routes.get("/crash-points", (_request, response) => sendJson(response, 200, { data: points }));
  routes.get("/effects", async (_request, response) => sendJson(response, 200, { data: await countEffects(db) }));
  return routes;
}

async function countEffects(db: Queryable): Promise<unknown[]> {
  const table = (name: string) => `select '${name}' as "table", tenant, client, idempotency_key from ${name}`;
  const { rows } = await db.query(
    `select "table", tenant, client, idempotency_key as key, count(*)::int as count
     from (${["invoices", "charges", "refunds"].map(table).join(" union all ")}) as effects
     group by 1, 2, 3, 4 order by 1, 2, 3, 4`,
  );
  return rows;
}
