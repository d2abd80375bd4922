import { refuse } from "./error.ts";
import type { ClientOptions, SendOptions } from "./options.ts";
import { type FixedRequest, fixRequest } from "./request.ts";
import { isSent } from "./retry-window.ts";
import { makeSender, type Sender } from "./sender.ts";
import { type Settings, settingsOf } from "./settings.ts";
import { makeShelf, placeOf, type Shelf } from "./shelf.ts";
import type { StoredSubmission, SubmissionRequest, SubmissionResult } from "./submission.ts";
import type { Tell } from "./tell.ts";

/** One user action with its key and its bytes, kept until its result is known. */
export interface Submission {
  readonly name: string;
  readonly key: string;
  /** Wall-clock milliseconds. */
  readonly createdAt: number;
  /** Whether an attempt may have been carried out, as far as this client knows. */
  readonly sent: boolean;
  /**
   * Sends it until its result is known, each time the same key and bytes; gives the stored result where there is one. Two
   * calls, tabs or processes never send it at the same time, and all get the result.
   */
  send(options?: SendOptions): Promise<SubmissionResult>;
  /**
   * Removes it, whatever became of it: the next submission of this name is another one. A sending of this client is
   * aborted; one of another tab or process is waited for. Raises the storage's error: what cannot be read is left.
   */
  discard(): Promise<void>;
}

/** A client that never mints a second key for one user action. */
export interface Client {
  /**
   * The submission of that name, made and kept now where there is none. `name` says which action of the user it is (a
   * cart's, a draft's id), not what is sent. Sends nothing. Raises `oncekey_submission_invalid`, and the storage's error.
   */
  submission(name: string, request: SubmissionRequest): Promise<Submission>;
  /** Makes (or finds) the submission and sends it. Raises `oncekey_submission_invalid` for a request that cannot be kept. */
  submit(name: string, request: SubmissionRequest, options?: SendOptions): Promise<SubmissionResult>;
  /** What is kept under a name, settled or not, without its request at hand; or `null`. Raises the storage's error. */
  find(name: string): Promise<Submission | null>;
  /** Those that are stored without a final result, oldest first. Raises the storage's error. */
  pending(): Promise<readonly Submission[]>;
  /**
   * After a restart: sends all that are pending, and tells what became of each. Raises the storage's error, and what
   * `attemptHeaders` raises for one; the others go on, and are kept with their results.
   */
  resume(options?: SendOptions): Promise<ReadonlyMap<string, SubmissionResult>>;
}

/** Creates a client. Raises `oncekey_config_invalid`. */
export function createClient(options: ClientOptions): Client {
  const settings = settingsOf(options);
  const { onEvent } = settings;
  const tell: Tell = (name, happening) => {
    // A listener must not come between a submission and its result, also where it is asynchronous.
    (async () => onEvent?.({ name, ...happening }))().catch(() => {});
  };
  const shelf = makeShelf(settings, tell);
  const sender = makeSender(settings, shelf, tell);
  const handle = (record: StoredSubmission, other?: FixedRequest) => handleOf(settings, shelf, sender, record, other);
  const pending = async () => (await shelf.unsettled()).map((record) => handle(record));
  return {
    async submission(name, request) {
      const fixed = await fix(name, request, settings);
      const found = await sender.findOrMake(name, fixed);
      return handle(found, placeOf(found, fixed) === "same" ? undefined : fixed);
    },
    async submit(name, request, given) {
      return sender.send(name, await fix(name, request, settings), given?.signal);
    },
    async find(name) {
      const record = await shelf.peek(name, true);
      return record && handle(record);
    },
    pending,
    async resume(given) {
      const results = new Map<string, SubmissionResult>();
      await Promise.all((await pending()).map(async ({ name, send }) => results.set(name, await send(given))));
      return results;
    },
  };
}

/** A submission at hand. `other`: what was asked for, where something else is in its way. */
function handleOf(
  { storage }: Settings,
  shelf: Shelf,
  { send, stop }: Sender,
  first: StoredSubmission,
  other: FixedRequest | undefined,
): Submission {
  const { name, createdAt } = first;
  // A list may be older than what was sent since it was read.
  if (first.attempts >= (shelf.remembered(name)?.attempts ?? 0)) shelf.remember(first);
  let record = first;
  const current = () => {
    const known = shelf.remembered(name);
    if (known && placeOf(known, other ?? record) === "same") record = known;
    return record;
  };
  return {
    name,
    createdAt,
    get key() {
      return current().key;
    },
    get sent() {
      return isSent(current());
    },
    // What is at hand stays what it is, with its key, also where it is no longer stored.
    send: (given) => send(name, other ?? current(), given?.signal),
    async discard() {
      const { key } = current();
      stop(name);
      await storage.exclusively(name, () => shelf.remove(name, key));
    },
  };
}

function fix(name: string, request: SubmissionRequest, settings: Settings): Promise<FixedRequest> {
  if (!name) refuse("The name cannot be used");
  return fixRequest(request, settings);
}
