/**
 * A process that submits one action of a user. It can be told to stop at a step for good, so that the test kills it exactly
 * there, and tells the test what it learns.
 */
import { createClient, type SubmissionResult, type SubmissionStorage } from "oncekey/client";
import { fileStorage } from "oncekey/client/file";

/** Where a sender can be told to stop, in the order in which it comes by. */
export type SenderStep =
  | "locked"
  | "before_persist"
  | "persisted"
  | "before_attempt"
  | "attempt_persisted"
  | "before_send"
  | "answered"
  | "before_recorded"
  | "recorded"
  | "before_delivery";

/** What a sender is told at its start. */
export interface SenderSettings {
  readonly directory: string;
  readonly url: string;
  readonly name: string;
  readonly stopAt?: SenderStep;
  /** Resumes what is pending before it submits: a process that was started anew. */
  readonly resumes?: boolean;
}

/** A result, as it travels between processes. */
export interface ToldResult {
  readonly kind: SubmissionResult["kind"];
  readonly body: unknown;
  readonly replayed: boolean | null;
}

/** What a sender tells. */
export type FromSender =
  | { readonly stoppedAt: SenderStep }
  | { readonly event: string }
  | { readonly resumed: Readonly<Record<string, ToldResult>>; readonly submitted: ToldResult };

const settings = JSON.parse(process.env.SENDER_SETTINGS ?? "{}") as SenderSettings;
const tell = (message: FromSender) => process.send?.(message);

async function reach(step: SenderStep): Promise<void> {
  if (step !== settings.stopAt) return;
  tell({ stoppedAt: step });
  await new Promise(() => {});
}

function stopping(storage: SubmissionStorage): SubmissionStorage {
  return {
    ...storage,
    async put(submission) {
      const recording = submission.settled !== null;
      const first = submission.attempts === 0 ? "before_persist" : "before_attempt";
      await reach(recording ? "before_recorded" : first);
      await storage.put(submission);
      const then = submission.attempts === 0 ? "persisted" : "attempt_persisted";
      await reach(recording ? "recorded" : then);
    },
    exclusively: (name, run, signal) =>
      storage.exclusively(
        name,
        async () => {
          await reach("locked");
          return run();
        },
        signal,
      ),
  };
}

const client = createClient({
  storage: stopping(fileStorage(settings.directory)),
  attemptHeaders: () => ({ "x-sender": String(process.pid) }),
  minPauseMs: 5,
  maxPauseMs: 50,
  async fetch(input, init) {
    await reach("before_send");
    const answer = await fetch(input, init);
    // The whole answer is in this process then.
    const whole = new Response(await answer.arrayBuffer(), answer);
    await reach("answered");
    return whole;
  },
  onEvent: ({ kind }) => tell({ event: kind }),
});

function told(result: SubmissionResult): ToldResult {
  const answered = result.kind === "succeeded" || result.kind === "refused";
  return {
    kind: result.kind,
    body: answered ? result.response.json() : null,
    replayed: answered ? result.replayed : null,
  };
}

const resumed = settings.resumes === true ? await client.resume() : new Map<string, SubmissionResult>();
const submitted = await client.submit(settings.name, { url: `${settings.url}/things`, json: { amount: 5 } });
await reach("before_delivery");
tell({
  resumed: Object.fromEntries([...resumed].map(([name, result]) => [name, told(result)])),
  submitted: told(submitted),
});
process.disconnect();
