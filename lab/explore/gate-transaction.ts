import { type Session, type Store, StoreFailure } from "../../src/core/store.ts";
import { aboutOf, phraseOf } from "./phrases.ts";
import { type Member, type OpenTransaction, register, type Stage, type StepAbout, type StepWay } from "./stage.ts";
import type { WorldTransaction } from "./world.ts";

type Transaction = Store<WorldTransaction>["transaction"];
type AnyMethod = (...args: unknown[]) => Promise<unknown>;

/** A transaction with all that its gate has to know of it. */
interface Opened extends OpenTransaction {
  readonly session: Session<WorldTransaction>;
  /** Lets the store's own transaction end: committed, or rolled back with the error. Gives what came of it. */
  end(error?: unknown): Promise<void>;
  /** Its connection is gone: whatever is sent on it fails. */
  isLost: boolean;
  /** Entry and fence of its last fenced statement. */
  fenced: Pick<StepAbout, "id" | "fence">;
}

/**
 * A process's `transaction`: each statement is a step, and so are COMMIT and ROLLBACK. `real`: the store's own transaction
 * object behind the one that business code has.
 */
export function gateTransaction(stage: Stage, owner: Member, base: Store<WorldTransaction>) {
  const known = new WeakMap<WorldTransaction, Opened>();
  const transaction: Transaction = async (body) => {
    const opened = await open(owner, base);
    const tx = gatedTx(stage, owner, opened);
    known.set(tx, opened);
    try {
      const value = await body(gatedSession(stage, owner, opened, opened.session, tx));
      await commit(stage, owner, opened);
      return value;
    } catch (error) {
      if (opened.isLost || opened.commit !== null) throw error;
      return await rollBack(stage, owner, opened, error);
    }
  };
  const real = (tx: WorldTransaction) => known.get(tx)?.session.tx ?? tx;
  const within: Store<WorldTransaction>["within"] = (tx) => {
    const opened = known.get(tx);
    const inner = base.within(real(tx));
    if (opened === undefined) return inner;
    return {
      read(id) {
        const ways = [ordinary(opened, () => inner.read(id))];
        return register(stage, {
          owner,
          label: phraseOf("read", [id]),
          ways,
          isLocal: false,
          about: aboutOf("read", [id]),
        }).settled as ReturnType<typeof inner.read>;
      },
      transaction: (inside) => inner.transaction((session) => inside(gatedSession(stage, owner, opened, session, tx))),
    };
  };
  return { transaction, within, real };
}

function settable<T>() {
  let settle: { resolve(value: T): void; reject(error: unknown): void } | undefined;
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...(settle as { resolve(value: T): void; reject(error: unknown): void }) };
}

async function open(owner: Member, base: Store<WorldTransaction>): Promise<Opened> {
  const began = settable<Session<WorldTransaction>>();
  const over = settable<void>();
  over.promise.catch(() => {});
  const ended = base.transaction((session) => {
    began.resolve(session);
    return over.promise;
  });
  ended.catch(began.reject);
  const session = await began.promise;
  const opened: Opened = {
    session,
    end: (error) => {
      if (error === undefined) over.resolve();
      else over.reject(error);
      return ended;
    },
    abort() {
      opened.isLost = true;
      over.reject(new Error("The connection is gone."));
    },
    isLost: false,
    commit: null,
    fenced: { id: null, fence: null },
  };
  owner.open.add(opened);
  ended.finally(() => owner.open.delete(opened)).catch(() => {});
  return opened;
}

const unavailable = () => new StoreFailure("unavailable", "Explored: the connection was lost.");
const commitUnknown = () => new StoreFailure("commit_unknown", "Explored: the connection was lost during COMMIT.");

function gatedSession(
  stage: Stage,
  owner: Member,
  opened: Opened,
  session: Session<WorldTransaction>,
  tx: WorldTransaction,
): Session<WorldTransaction> {
  const gated: Record<string, unknown> = { tx };
  for (const [name, method] of Object.entries(session)) {
    if (typeof method !== "function") continue;
    gated[name] = (...args: unknown[]) => {
      const about = aboutOf(`session.${name}`, args);
      if (about.fence !== null) opened.fenced = about;
      const run = () => (method as AnyMethod).apply(session, args);
      const ways = [ordinary(opened, run), lostWay(opened)];
      return register(stage, { owner, label: phraseOf(name, args), ways, isLocal: false, about }).settled;
    };
  }
  return gated as unknown as Session<WorldTransaction>;
}

function ordinary(opened: Opened, run: () => Promise<unknown>): StepWay {
  return {
    label: "",
    costs: null,
    async perform() {
      if (opened.isLost) throw unavailable();
      return run();
    },
  };
}

function lostWay(opened: Opened): StepWay {
  return {
    label: "finds its connection lost",
    costs: "refused",
    perform() {
      opened.abort();
      throw unavailable();
    },
  };
}

/** Rows are written where nobody sees them before the COMMIT: such a step needs no order of its own. */
function gatedTx(stage: Stage, owner: Member, opened: Opened): WorldTransaction {
  const { tx } = opened.session;
  const statement = (label: string, isLocal: boolean, run: () => Promise<unknown>) => {
    const about: StepAbout = { method: "tx", id: null, fence: null };
    return register(stage, { owner, label, ways: [ordinary(opened, run)], isLocal, about }).settled;
  };
  return {
    insert: (table, row) => statement(`inserts into ${table}`, true, () => tx.insert(table, row)) as Promise<void>,
    rows: (table) => statement(`reads ${table}`, false, () => tx.rows(table)) as Promise<never>,
  };
}

async function commit(stage: Stage, owner: Member, opened: Opened): Promise<void> {
  const about: StepAbout = { method: "COMMIT", ...opened.fenced };
  const ways = commitWays(stage, owner, opened, about);
  const { step, settled } = register(stage, { owner, label: "commits", ways, isLocal: false, about });
  opened.commit = step;
  await settled;
}

function commitWays(stage: Stage, owner: Member, opened: Opened, about: StepAbout): StepWay[] {
  const arrive = async () => {
    if (opened.isLost) throw commitUnknown();
    await opened.end();
  };
  return [
    { label: "", costs: null, perform: arrive },
    {
      label: "its answer is lost",
      costs: "lost",
      async perform() {
        await arrive().catch(() => {});
        throw commitUnknown();
      },
    },
    {
      label: "its COMMIT never arrives",
      costs: "refused",
      perform() {
        opened.abort();
        throw commitUnknown();
      },
    },
    {
      label: "its COMMIT is adrift",
      costs: "adrift",
      perform() {
        setAdrift(stage, owner, opened, about);
        throw commitUnknown();
      },
    },
  ];
}

/** Leaves a COMMIT on its way to the server, although nobody waits for it: it applies later, or never. */
export function setAdrift(stage: Stage, owner: Member, open: OpenTransaction, about: StepAbout): void {
  const { end, abort } = open as Opened;
  const ways: StepWay[] = [
    { label: "arrives", costs: null, perform: () => end().catch(() => {}) },
    { label: "never arrives", costs: null, perform: abort },
  ];
  register(stage, { owner: null, label: `the COMMIT of ${owner.name}`, ways, isLocal: false, about });
}

async function rollBack(stage: Stage, owner: Member, opened: Opened, error: unknown): Promise<never> {
  const about: StepAbout = { method: "ROLLBACK", ...opened.fenced };
  const way: StepWay = { label: "", costs: null, perform: () => opened.end(error) };
  await register(stage, { owner, label: "rolls back", ways: [way], isLocal: false, about }).settled;
  throw error;
}
