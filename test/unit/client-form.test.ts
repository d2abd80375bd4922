import {
  type Client,
  createClient,
  memoryStorage,
  type SubmissionResult,
  type SubmissionStorage,
} from "oncekey/client";
import { type PageForm, type SubmissionFormOptions, submissionForm } from "oncekey/client/form";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

// What a page's form keeps and tells, over pages that come and go. How browsers behave is tested in Chromium (test/e2e).

type Listener = (event: never) => void;

/** A tab: its session storage and history outlive a page. */
interface Tab {
  readonly session: Map<string, string>;
  /** The query of its address. */
  search: string;
  history: { state: unknown; replaceState(state: unknown): void };
}

const TAB = "a tab that blocks its storage";
let tab: Tab;
let storage: SubmissionStorage;
let requests: { readonly key: string | null; readonly body: string }[];
let answer: () => Response | Promise<Response>;

beforeEach(() => {
  tab = newTab();
  storage = memoryStorage();
  requests = [];
  answer = () => Response.json({ id: "ch_1" }, { status: 201 });
});

afterEach(() => vi.unstubAllGlobals());

function newTab(): Tab {
  const history = {
    state: null as unknown,
    replaceState(state: unknown) {
      history.state = structuredClone(state);
    },
  };
  return { session: new Map(), search: "", history };
}

interface Page {
  readonly form: ReturnType<typeof submissionForm>;
  readonly results: SubmissionResult[];
  readonly events: string[];
  readonly errors: unknown[];
  readonly button: { readonly type: string; disabled: boolean };
  readonly attributes: Map<string, string>;
  fields: Record<string, string>;
  /** The user presses the button; resolves when the form is at rest. */
  press(): Promise<void>;
  /** An event of the page's window. */
  fire(type: string, event: object): Promise<void>;
}

/** Loads a page with a form in the tab. */
async function load(options: Partial<SubmissionFormOptions> = {}, { blocked = false, id = "pay" } = {}): Promise<Page> {
  const ofWindow = new Map<string, Listener>();
  const ofForm = new Map<string, Listener>();
  const button = { type: "submit", disabled: true };
  const attributes = new Map<string, string>();
  const listen = (all: Map<string, Listener>) => (type: string, listener: Listener, more: { signal: AbortSignal }) => {
    all.set(type, listener);
    more.signal.addEventListener("abort", () => all.delete(type));
  };
  stubWindow(listen(ofWindow), blocked);
  const element = {
    id,
    elements: [{ type: "text" }, button],
    setAttribute: (name: string, value: string) => void attributes.set(name, value),
    addEventListener: listen(ofForm),
  };
  const results: SubmissionResult[] = [];
  const events: string[] = [];
  const errors: unknown[] = [];
  const client = createClient({ storage, fetch: answering, retryWindowMs: 1_000, maxPauseMs: 10, minPauseMs: 1 });
  const form = submissionForm(element as PageForm, {
    client,
    request: (fields) => ({ url: "https://shop.test/charges", json: Object.fromEntries(fields.entries()) }),
    onResult: (result) => results.push(result),
    onEvent: (event) => events.push(event.kind === "warning" ? event.what : event.kind),
    onError: (error) => errors.push(error),
    ...options,
  });
  const rest = () => expect.poll(() => attributes.get("aria-busy")).toBe("false");
  const page: Page = {
    ...{ form, results, events, errors, button, attributes, fields: { amount: "1" } },
    async press() {
      const event = { preventDefault: vi.fn(), submitter: null };
      Object.assign(element, { fields: page.fields });
      ofForm.get("submit")?.(event as never);
      expect(event.preventDefault).toHaveBeenCalledOnce();
      await rest();
    },
    async fire(type, event) {
      ofWindow.get(type)?.(event as never);
      await rest();
    },
  };
  await rest();
  return page;
}

function stubWindow(addEventListener: unknown, blocked: boolean): void {
  const allowed = {
    getItem: (key: string) => tab.session.get(key) ?? null,
    setItem: (key: string, value: string) => void tab.session.set(key, value),
  };
  vi.stubGlobal("location", { pathname: "/checkout", search: tab.search, href: "https://shop.test/checkout" });
  vi.stubGlobal("addEventListener", addEventListener);
  vi.stubGlobal("history", tab.history);
  vi.stubGlobal("sessionStorage", allowed);
  if (blocked) {
    Object.defineProperty(globalThis, "sessionStorage", {
      configurable: true,
      get: () => {
        throw new Error(TAB);
      },
    });
  }
  vi.stubGlobal("FormData", function FormData(form: { readonly fields: Record<string, string> }) {
    return new Map(Object.entries(form.fields));
  });
}

const answering: typeof fetch = async (_input, init) => {
  const headers = new Headers(init?.headers);
  const body = init?.body === undefined ? "" : Buffer.from(init.body as Uint8Array).toString();
  requests.push({ key: headers.get("idempotency-key"), body });
  return answer();
};

const keys = () => new Set(requests.map(({ key }) => key)).size;
const declined = () => Response.json({ code: "card_declined" }, { status: 402 });

describe("a form's submission", () => {
  it("is sent once, and told again by each page of the tab", async () => {
    const first = await load();
    expect([first.results, first.button.disabled]).toEqual([[], false]);
    await first.press();
    expect(first.results).toMatchObject([{ kind: "succeeded" }]);
    const second = await load();
    expect(second.results).toMatchObject([{ kind: "succeeded" }]);
    await second.press();
    expect(second.results).toHaveLength(2);
    expect(requests).toHaveLength(1);
  });

  it("begins anew when the user says so, and nothing else does", async () => {
    const page = await load();
    await page.press();
    page.fields = { amount: "2" };
    await page.press();
    expect(page.results).toMatchObject([{ kind: "succeeded" }, { kind: "succeeded" }]);
    expect(requests).toHaveLength(1);
    await page.form.startAnew();
    await page.press();
    expect([requests.length, keys()]).toEqual([2, 2]);
  });

  it("of a named form stays the named one: there is nothing to start anew", async () => {
    const page = await load({ name: "order 42" });
    await page.press();
    await page.form.startAnew();
    page.fields = { amount: "2" };
    await page.press();
    expect(page.results).toMatchObject([{ kind: "succeeded" }, { kind: "in_the_way", settled: true }]);
    tab = newTab();
    expect((await load({ name: "order 42" })).results).toMatchObject([{ kind: "succeeded" }]);
    expect((await load({ name: "order 43" })).results).toEqual([]);
    expect(requests).toHaveLength(1);
  });

  it("follows a refusal with a key of its own, for the same contents too", async () => {
    answer = declined;
    const page = await load();
    await page.press();
    await page.press();
    expect(page.results).toMatchObject([{ kind: "refused" }, { kind: "refused" }]);
    expect((await load()).results).toMatchObject([{ kind: "refused" }]);
    expect([requests.length, keys()]).toEqual([2, 2]);
  });

  it("keeps its name after a refusal that does not tell what became of an earlier attempt", async () => {
    const names: string[] = [];
    const refused = { kind: "refused", certain: false, retry: "new_key" } as SubmissionResult;
    const client = {
      find: async () => null,
      pending: async () => [],
      submit: async (name: string) => {
        names.push(name);
        return refused;
      },
    };
    const page = await load({ client: client as unknown as Client });
    await page.press();
    await page.press();
    expect([names.length, new Set(names).size]).toEqual([2, 1]);
  });

  it("goes on with what another tab of this form left undecided, and not with another form's", async () => {
    answer = () => new Response(null, { status: 503 });
    const gone = await load();
    await gone.press();
    expect(gone.results).toMatchObject([{ kind: "unknown" }]);
    tab = newTab();
    answer = () => Response.json({ id: "ch_1" }, { status: 201 });
    expect((await load({ name: "order 42" })).results).toEqual([]);
    expect((await load({}, { id: "other" })).results).toEqual([]);
    // The window of the first page is over; whatever the client then says of it, it is the one that was begun.
    expect((await load()).results).toHaveLength(1);
    expect(keys()).toBe(1);
  });

  it("is not that of the same page with another query, which may be another order", async () => {
    tab.search = "?order=1";
    await (await load()).press();
    tab.search = "?order=2";
    const second = await load();
    expect(second.results).toEqual([]);
    await second.press();
    tab.search = "?order=1";
    expect((await load()).results).toMatchObject([{ kind: "succeeded" }]);
    expect([requests.length, keys()]).toEqual([2, 2]);
  });

  it("is shown once more, and not done again, where the user clears the storage of the page that has it", async () => {
    const page = await load();
    await page.press();
    for (const { name } of await storage.list()) await storage.remove(name);
    await page.press();
    expect(page.results).toMatchObject(Array(2).fill({ kind: "succeeded" }));
    expect(requests).toHaveLength(1);
  });

  it("is told by a page that comes back as it was left", async () => {
    const page = await load({ name: "order 42" });
    await (await load({ name: "order 42" })).press();
    expect(page.results).toEqual([]);
    await page.form.resume();
    expect(page.results).toMatchObject([{ kind: "succeeded" }]);
  });

  it("is told on pageshow only where the page was kept", async () => {
    const page = await load();
    await page.press();
    await page.fire("pageshow", { persisted: false });
    expect(page.results).toHaveLength(1);
    await page.fire("pageshow", { persisted: true });
    expect(page.results).toHaveLength(2);
  });
});

describe("what a tab remembers", () => {
  it.each(["session", "history"] as const)("warns of a cleared storage, by its %s alone", async (left) => {
    answer = () => new Response(null, { status: 503 });
    await (await load()).press();
    storage = memoryStorage();
    if (left === "history") tab.session.clear();
    else tab.history.state = null;
    const page = await load();
    expect([page.events, page.results]).toEqual([["storage_cleared"], []]);
    expect((await load()).events).toEqual([]);
    await page.press();
    expect(keys()).toBe(2);
  });

  it("warns of a storage that was cleared while a page sent that is gone", async () => {
    const page = await load();
    let asked = false;
    answer = () => {
      asked = true;
      return new Promise<Response>(() => {});
    };
    page.press().catch(() => {});
    await expect.poll(() => asked).toBe(true);
    storage = memoryStorage();
    expect((await load()).events).toEqual(["storage_cleared"]);
  });

  it("does not warn where nothing was sent, and where the result was seen", async () => {
    await load();
    storage = memoryStorage();
    const page = await load();
    await page.press();
    storage = memoryStorage();
    expect([page.events, (await load()).events]).toEqual([[], []]);
  });

  it("does not warn where the submission could not be kept", async () => {
    storage = { ...memoryStorage(), put: () => Promise.reject(new Error("full")) };
    const page = await load();
    await page.press();
    expect(page.results).toMatchObject([{ kind: "not_kept" }]);
    expect([(await load()).events, requests]).toEqual([[], []]);
  });

  it("warns a named form whose result is gone, and the click that finds it gone sends nothing", async () => {
    const page = await load({ name: "order 42" });
    await page.press();
    storage = memoryStorage();
    expect((await load({ name: "order 42" })).events).toEqual(["storage_cleared"]);
  });

  it("lives as long as the page where the browser blocks the tab's storages", async () => {
    tab.history = {
      state: null,
      replaceState() {
        throw new Error(TAB);
      },
    };
    const page = await load({}, { blocked: true });
    await page.press();
    await page.press();
    expect(page.results).toMatchObject([{ kind: "succeeded" }, { kind: "succeeded" }]);
    expect([requests.length, page.errors]).toEqual([1, []]);
  });

  it("leaves an application's own history state alone", async () => {
    tab.history.state = { route: 7 };
    await (await load()).press();
    expect(tab.history.state).toMatchObject({ route: 7 });
    tab.history.state = "route 7";
    await (await load()).press();
    expect(tab.history.state).toBe("route 7");
  });
});

describe("the form itself", () => {
  it("is busy while it sends: its button is disabled, and a second press joins", async () => {
    let busy: unknown;
    const page = await load();
    answer = () => {
      busy = [page.button.disabled, page.attributes.get("aria-busy")];
      return Response.json({}, { status: 201 });
    };
    await Promise.all([page.press(), page.press()]);
    expect(busy).toEqual([true, "true"]);
    expect([page.button.disabled, requests.length, page.results.length]).toEqual([false, 1, 1]);
  });

  it("tells what the request's maker raises, is at rest afterwards, and has sent nothing", async () => {
    const broken = new Error("no such card");
    const page = await load({
      request: () => {
        throw broken;
      },
    });
    await page.press();
    expect([page.errors, page.button.disabled, requests]).toEqual([[broken], false, []]);
  });

  it("tells a storage that cannot be read", async () => {
    storage = { ...memoryStorage(), get: () => Promise.reject(new Error("blocked")) };
    const page = await load();
    expect([page.errors, page.results, page.button.disabled]).toEqual([[new Error("blocked")], [], false]);
  });

  it("that was stopped tells nothing more, and what it sends is kept", async () => {
    const page = await load();
    answer = () => {
      page.form.stop();
      return Response.json({}, { status: 201 });
    };
    await page.press();
    expect(page.results).toEqual([]);
    expect((await load()).results).toMatchObject([{ kind: "succeeded" }]);
    expect(requests).toHaveLength(1);
  });
});
