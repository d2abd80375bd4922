import { OncekeyError } from "../core/errors.ts";
import type { LongBody, OutcomeBody } from "../core/outcome.ts";
import { heldFile } from "../engine/held-bytes.ts";
import { type Blocks, createBlocks } from "./blocks.ts";
import type { RecordingLimits } from "./recording-limits.ts";
import { openSpoolFile, type SpoolFile } from "./spool-file.ts";

/** What one answer may hold in memory while it is recorded; one that is not longer may stay there. */
const ANSWER_MEMORY_BYTES = 262_144;
/** From so many bytes that wait for the file the writer is asked to pause. */
const WAITING_BYTES = 65_536;

/**
 * Holds an answer's bytes while it is recorded: in memory as long as the answer is short and the budget allows, else in a
 * temporary file without a name.
 */
export interface Spool {
  /** Bytes so far. */
  readonly length: number;
  /**
   * Keeps a copy. `false`: bytes wait for the file, `drained` tells when there are none. Raises `oncekey_stream_refused` at
   * the byte that goes over the limit, and where the file cannot be written.
   */
  append(bytes: Uint8Array): boolean;
  /** Resolves when no bytes wait for the file. Rejects as `append` raises. */
  drained(): Promise<void>;
  /** All the bytes, of which no more come; `release` lets go of those in the file. Rejects as `append` raises. */
  end(): Promise<OutcomeBody>;
  /** Gives memory and file back; more bytes are swallowed. Calling it again does nothing. */
  release(): void;
  /**
   * The same for bytes that somebody may still be storing: the budget gets its room back at once, the file is given back
   * when nobody knows of its body any more.
   */
  abandon(): void;
}

interface State {
  readonly limits: RecordingLimits;
  readonly blocks: Blocks;
  length: number;
  /** Room that is taken of the budget: of the blocks, and of those being written. */
  held: number;
  file: SpoolFile | null;
  body: LongBody | null;
  writing: Promise<void> | null;
  failure: OncekeyError | null;
  released: boolean;
}

/** Creates an empty spool. */
export function createSpool(limits: RecordingLimits): Spool {
  const state: State = {
    limits,
    blocks: createBlocks(),
    length: 0,
    held: 0,
    file: null,
    body: null,
    writing: null,
    failure: null,
    released: false,
  };
  return {
    get length() {
      return state.length;
    },
    append: (bytes) => append(state, bytes),
    drained: () => drained(state),
    end: () => end(state),
    release: () => release(state),
    abandon() {
      if (state.body === null) return release(state);
      state.body = null;
      state.file = null;
      release(state);
    },
  };
}

function append(state: State, bytes: Uint8Array): boolean {
  if (state.released) return true;
  if (state.failure !== null) throw state.failure;
  const { maxAnswerBytes } = state.limits;
  if (state.length + bytes.length > maxAnswerBytes) throw tooLong(maxAnswerBytes);
  state.length += bytes.length;
  if (!keep(state, bytes)) writeNow(state, bytes);
  if (state.file === null) return true;
  if (state.blocks.length > 0) startWriting(state, state.file);
  return state.held < WAITING_BYTES;
}

function keep(state: State, bytes: Uint8Array): boolean {
  const room = state.blocks.roomFor(bytes.length);
  if (state.held + room > ANSWER_MEMORY_BYTES || !state.limits.budget.take(room)) return false;
  state.held += room;
  state.blocks.push(bytes);
  return true;
}

/** Without a copy, and before it returns: that holds this thread up for the moment, but never takes more memory. */
function writeNow(state: State, bytes: Uint8Array): void {
  try {
    state.file ??= openSpoolFile();
    const { parts, capacity } = state.blocks.take();
    state.file.writeNow([...parts, bytes]);
    giveBack(state, capacity);
  } catch (error) {
    state.failure = unwritable(error);
    throw state.failure;
  }
}

function startWriting(state: State, file: SpoolFile): void {
  state.writing ??= writeOut(state, file)
    .catch((error: unknown) => {
      state.failure ??= unwritable(error);
    })
    .finally(() => {
      state.writing = null;
      if (state.released) file.close();
      // Bytes that came after the last look.
      else if (state.failure === null && state.blocks.length > 0) startWriting(state, file);
    });
}

async function writeOut(state: State, file: SpoolFile): Promise<void> {
  while (state.blocks.length > 0) {
    const { parts, capacity } = state.blocks.take();
    await file.write(parts);
    giveBack(state, capacity);
  }
}

function giveBack(state: State, bytes: number): void {
  // A release has given all of it back already.
  if (state.released) return;
  state.held -= bytes;
  state.limits.budget.give(bytes);
}

async function drained(state: State): Promise<void> {
  while (state.writing !== null) await state.writing;
  if (state.failure !== null) throw state.failure;
}

async function end(state: State): Promise<OutcomeBody> {
  await drained(state);
  if (state.file !== null && !state.released) {
    state.body ??= heldFile(state.file.fd, state.length);
    return state.body;
  }
  const bytes = state.blocks.whole();
  giveBack(state, state.held - bytes.length);
  return bytes;
}

function release(state: State): void {
  if (state.released) return;
  state.limits.budget.give(state.held);
  state.released = true;
  state.held = 0;
  state.blocks.take();
  if (state.body !== null) void state.body.release();
  // A file that is being written is closed when that has ended: its number could be another file's by then.
  else if (state.writing === null) state.file?.close();
}

function tooLong(limitBytes: number): OncekeyError {
  return new OncekeyError(
    "oncekey_stream_refused",
    `The captured handler answered more than ${limitBytes} bytes. Nothing was sent or stored; the key needs recovery. Raise maxAnswerBytes, or serve such answers on a route of their own, without Oncekey.`,
  );
}

function unwritable(cause: unknown): OncekeyError {
  return new OncekeyError(
    "oncekey_stream_refused",
    "The captured handler's answer could not be kept in a temporary file until it is stored. Nothing was sent or stored; the key needs recovery. Give the process room in its directory for temporary files, and file descriptors.",
    { cause },
  );
}
