import type { Client } from "./client.ts";
import type { ClientEvent } from "./options.ts";
import type { SubmissionRequest, SubmissionResult } from "./submission.ts";

/** The event of a form that is sent, as far as this file looks at it. */
export interface FormSubmitEvent {
  preventDefault(): void;
  /** The button that was pressed. */
  readonly submitter?: unknown;
}

/** A form of the page: `HTMLFormElement` fits. */
export interface PageForm {
  readonly id: string;
  readonly elements: ArrayLike<unknown>;
  setAttribute(name: string, value: string): void;
  addEventListener(type: "submit", listener: (event: FormSubmitEvent) => void, options: ListenerOptions): void;
}

/** The listener goes when the signal aborts. */
interface ListenerOptions {
  readonly signal: AbortSignal;
}

/** Options of `submissionForm`. */
export interface SubmissionFormOptions {
  /** Keeps the submissions, and sends them. */
  readonly client: Client;
  /**
   * Which action of the user the form is, where it has a name of its own: a cart's, an order's. All tabs with that name
   * share one submission. Default: a random one for each draft, kept with the tab (`sessionStorage`) for this form.
   */
  readonly name?: string;
  /** What is sent for the fields' values. Asked once for each submission. */
  readonly request: (fields: FormData) => SubmissionRequest | Promise<SubmissionRequest>;
  /** Told what became of the submission, and told again after a reload, the back button, or in a new tab. */
  readonly onResult: (result: SubmissionResult) => void;
  /** Told of `storage_cleared` when what this tab had sent is no longer kept. The client's own events go to its `onEvent`. */
  readonly onEvent?: (event: ClientEvent) => void;
  /** Told of an error of `request`, or of a storage that cannot be read. Default: an unhandled rejection of the page. */
  readonly onError?: (error: unknown) => void;
}

/** A form that sends one submission for each action of its user. */
export interface SubmissionForm {
  /** Goes on with what is kept for this form, and tells its result; nothing happens where there is none. */
  resume(): Promise<void>;
  /** The user begins another action after this one. Without effect on a form with a `name`, and while it sends. */
  startAnew(): Promise<void>;
  /** Takes the listeners away and tells nothing more; what is kept stays, and a sending under way goes on. */
  stop(): void;
}

/**
 * What is known of the draft's submission. `new`: nothing was sent; `sent`: it may have been, its result was not shown;
 * `refused`: shown, and another action may follow; `done`: carried out and shown.
 */
type DraftState = "new" | "sent" | "refused" | "done";

/** The browser's page, as far as this file looks at it. */
interface FormPage {
  readonly location: { readonly pathname: string; readonly search: string };
  readonly sessionStorage: { getItem(key: string): string | null; setItem(key: string, value: string): void };
  readonly history: { readonly state: unknown; replaceState(state: object, unused: string): void };
  addEventListener(type: "pageshow", listener: (event: PageShowEvent) => void, options: ListenerOptions): void;
}

/** `persisted`: the page comes back as it was left, with all that ran in it. */
interface PageShowEvent {
  readonly persisted: boolean;
}

/** What the functions of one form share. */
interface Sheet {
  readonly form: PageForm;
  readonly options: SubmissionFormOptions;
  readonly draft: Draft;
  /** How the names of this form's random drafts begin. */
  readonly prefix: string;
  /** Aborted: nothing more is told. */
  readonly signal: AbortSignal;
}

type Work = (sheet: Sheet) => Promise<SubmissionResult | null>;

/**
 * Sends a form through the client: a double click, the back button, a reload during the request and a closed tab make no
 * second submission, and the result is shown wherever the user comes back. The form's submit buttons are disabled while it
 * looks for what is kept and while it sends (start them disabled in the page: a click before this runs would send the form
 * without it).
 */
export function submissionForm(form: PageForm, options: SubmissionFormOptions): SubmissionForm {
  const page = globalThis as unknown as FormPage;
  const end = new AbortController();
  const { signal } = end;
  // With the query: where it says what is paid, the next one is not to be shown as paid.
  const prefix = `${page.location.pathname}${page.location.search}#${form.id}~`;
  const draft = openDraft(page, options.name, prefix);
  const take = takeTurns({ form, options, draft, prefix, signal });
  const onSubmit = (event: FormSubmitEvent): void => {
    event.preventDefault();
    // Read before the buttons are disabled: the pressed one is a field too.
    const fields = fieldsOf(form, event.submitter);
    void take((sheet) => sendFields(sheet, fields));
  };
  const onPageShow = ({ persisted }: PageShowEvent): void => {
    if (persisted) void take(goOn);
  };
  form.addEventListener("submit", onSubmit, { signal });
  page.addEventListener("pageshow", onPageShow, { signal });
  void take(goOn);
  return {
    resume: () => take(goOn),
    startAnew: () => take(async () => draft.begin()),
    stop: () => end.abort(),
  };
}

/** Runs one piece of work at a time; whoever comes meanwhile gets the end of the one that runs. */
function takeTurns(sheet: Sheet): (work: Work) => Promise<void> {
  let running: Promise<void> | null = null;
  const run = async (work: Work): Promise<void> => {
    const { form, options, draft, signal } = sheet;
    const before = draft.state;
    setBusy(form, true);
    try {
      const result = await work(sheet);
      if (result === null) return;
      draft.write(stateAfter(result, before));
      if (!signal.aborted) options.onResult(result);
    } catch (error) {
      if (options.onError === undefined) throw error;
      options.onError(error);
    } finally {
      running = null;
      setBusy(form, false);
    }
  };
  return (work) => {
    running ??= run(work);
    return running;
  };
}

/** Goes on with what is kept: this tab's, or one that another tab (closed by now, perhaps) has begun in this form. */
async function goOn({ options, draft, prefix }: Sheet): Promise<SubmissionResult | null> {
  const { client, name } = options;
  let kept = await client.find(draft.name);
  if (kept === null && draft.state === "new" && name === undefined) {
    kept = (await client.pending()).find((one) => one.name.startsWith(prefix)) ?? null;
  }
  if (kept !== null) {
    draft.write("sent", kept.name);
    return kept.send();
  }
  if (draft.state === "sent" || (draft.state === "done" && name !== undefined)) {
    options.onEvent?.({ kind: "warning", what: "storage_cleared", name: draft.name });
  }
  return draft.state === "new" ? null : draft.begin();
}

async function sendFields(sheet: Sheet, fields: FormData): Promise<SubmissionResult | null> {
  const { options, draft } = sheet;
  if (draft.state === "done") {
    const shown = await goOn(sheet);
    // A named action that was carried out is not carried out again by the click that finds its result gone.
    if (shown !== null || options.name !== undefined) return shown;
  }
  const request = await options.request(fields);
  if (draft.state === "refused") draft.begin();
  draft.write("sent");
  return options.client.submit(draft.name, request);
}

function stateAfter(result: SubmissionResult, before: DraftState): DraftState {
  if (result.kind === "succeeded") return "done";
  if (result.kind === "refused" && result.certain && result.retry === "new_key") return "refused";
  return result.kind === "not_kept" ? before : "sent";
}

/** Which submission the tab's form stands for. */
interface Draft {
  readonly state: DraftState;
  readonly name: string;
  write(state: DraftState, name?: string): void;
  /** Another action of the user begins; it has no result. */
  begin(): null;
}

/**
 * The tab's draft, kept over reloads where the browser allows it: with the tab, and with the page's entry in its history,
 * which is still there when the user has cleared the site's storages.
 */
function openDraft(page: FormPage, fixed: string | undefined, prefix: string): Draft {
  const slot = `oncekey:${fixed ?? prefix}`;
  const inHistory = () => (page.history.state as Record<string, string> | null)?.[slot];
  const [state, ...name] = (quietly(() => page.sessionStorage.getItem(slot)) ?? inHistory())?.split(" ") ?? [];
  const draft: Draft = {
    state: state as DraftState,
    name: name.join(" "),
    write(state: DraftState, name = draft.name): void {
      Object.assign(draft, { state, name });
      const text = `${state} ${name}`;
      quietly(() => page.sessionStorage.setItem(slot, text));
      const entry = page.history.state;
      // An application's own state stays: an object gets one member more, anything else is left alone.
      if (typeof entry === "object") quietly(() => page.history.replaceState({ ...entry, [slot]: text }, ""));
    },
    begin(): null {
      draft.write("new", fixed ?? prefix + crypto.getRandomValues(new Uint32Array(4)).join("-"));
      return null;
    },
  };
  if (state === undefined) draft.begin();
  return draft;
}

/** For a medium that browsers block or fill, even its name: without it, the draft lives as long as the page. */
function quietly<T>(run: () => T): T | null {
  try {
    return run();
  } catch {
    return null;
  }
}

function fieldsOf(form: PageForm, submitter: unknown): FormData {
  const Fields = FormData as unknown as new (form: PageForm, submitter: unknown) => FormData;
  return new Fields(form, submitter);
}

function setBusy(form: PageForm, busy: boolean): void {
  form.setAttribute("aria-busy", `${busy}`);
  for (const element of Array.from(form.elements) as { type?: string; disabled: boolean }[]) {
    if (element.type === "submit") element.disabled = busy;
  }
}
