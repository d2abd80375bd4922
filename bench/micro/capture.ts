import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { Writable } from "node:stream";
import { recordResponse } from "../../src/http/recorder.ts";
import { recordingBudget } from "../../src/http/recording-limits.ts";
import { jsonBody } from "./body.ts";
import type { Subject } from "./subject.ts";

const limits = { maxAnswerBytes: 67_108_864, budget: recordingBudget(67_108_864) };

/** Takes what is written and keeps nothing: a connection whose other end costs nothing. */
const nowhere = () => new Writable({ write: (_chunk, _encoding, done) => done() }) as unknown as Socket;

function freshResponse(): ServerResponse {
  const req = new IncomingMessage(new Socket());
  req.method = "POST";
  req.httpVersionMajor = 1;
  req.httpVersionMinor = 1;
  const res = new ServerResponse(req);
  res.assignSocket(nowhere());
  return res;
}

function handle(res: ServerResponse, body: Uint8Array): void {
  res.statusCode = 201;
  res.setHeader("Content-Type", "application/json");
  res.setHeader("Location", "/v1/orders/1");
  res.end(body);
}

/** An ordinary handler's answer on Node's response: recorded, then sent. */
export const capture: Subject = {
  name: "capture",
  what: "record what a handler answers on Node's response, then send it",
  against: "the same handler on the same response, without a recording",
  pair(bytes) {
    const body = jsonBody(bytes);
    return {
      async work() {
        const res = freshResponse();
        const recorder = recordResponse(res, new AbortController().signal, limits);
        recorder.run(() => handle(res, body));
        await recorder.outcome;
        recorder.release({ add: [], remove: "idempotent-replayed" });
      },
      yardstick: () => handle(freshResponse(), body),
    };
  },
};
