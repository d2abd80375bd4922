import { useState } from "preact/hooks";
import { changeMessage, type Message, messages } from "../data/outbox.ts";
import { useList } from "../load.ts";
import { Confirm } from "../parts/confirm.tsx";
import { EntryLink, Name, When } from "../parts/facts.tsx";
import { DoneNotice, Empty } from "../parts/states.tsx";
import { type Column, ListOf, Table } from "../parts/table.tsx";
import { hashOf } from "../route.ts";
import { useOperator } from "../session.ts";

/** What every table of messages shows: nothing of what they tell. */
export const MESSAGE_COLUMNS: readonly Column<Message>[] = [
  { name: "Topic", cell: ({ topic }) => topic },
  { name: "State", cell: ({ state }) => <span class={`badge ${state === "dead" ? "bad" : "plain"}`}>{state}</span> },
  { name: "Tries", cell: ({ attempts }) => attempts, end: true },
  { name: "Why", cell: ({ reason }) => reason ?? "–" },
  { name: "Sent", cell: ({ createdAt }) => <When at={createdAt} /> },
  { name: "Due", cell: ({ availableAt, state }) => (state === "dead" ? "–" : <When at={availableAt} />) },
];

/** Messages that are on their way, and those that no relay tries any more. */
export function OutboxPage({ state }: { readonly state: "dead" | "pending" }) {
  const [done, setDone] = useState<string | null>(null);
  const { readOnly } = useOperator();
  const list = useList(state, (cursor, asking) =>
    messages(state, cursor, asking).then(({ messages: items, next }) => ({ items, next })),
  );
  const changed = (message: string) => {
    setDone(message);
    list.reload();
  };
  return (
    <>
      <h1>Outbox</h1>
      <nav class="tabs" aria-label="Which messages">
        <Tab name="Dead letters" of="dead" chosen={state} />
        <Tab name="Waiting" of="pending" chosen={state} />
      </nav>
      <DoneNotice text={done} />
      <ListOf list={list} what="messages" empty={<NoMessages state={state} />}>
        {(items) => (
          <Table
            caption={state === "dead" ? "Dead letters by topic" : "Waiting messages by when they are due"}
            columns={readOnly ? columns(state) : [...columns(state), actions(changed)]}
            items={items}
            keyOf={({ id }) => id}
          />
        )}
      </ListOf>
    </>
  );
}

function Tab({ name, of, chosen }: { readonly name: string; readonly of: string; readonly chosen: string }) {
  return (
    <a href={hashOf("outbox", null, { state: of })} aria-current={of === chosen ? "true" : undefined}>
      {name}
    </a>
  );
}

function NoMessages({ state }: { readonly state: "dead" | "pending" }) {
  return state === "dead" ? (
    <Empty title="No dead letters">Every message was delivered, or is still tried.</Empty>
  ) : (
    <Empty title="Nothing waits">Every message was delivered, or is a dead letter.</Empty>
  );
}

/** With whose they are; what is dead is never due. */
function columns(state: "dead" | "pending"): readonly Column<Message>[] {
  const topic: Column<Message> = {
    name: "Topic",
    cell: ({ topic: name, tenant }) => (
      <>
        <Name of={name} /> <span class="second quiet">{tenant}</span>
      </>
    ),
  };
  const more: readonly Column<Message>[] = [
    { name: "Entry", cell: ({ entryId }) => (entryId === null ? "–" : <EntryLink id={entryId} />) },
    { name: "Order", cell: ({ orderBy }) => (orderBy === null ? "any" : <span class="mono">{orderBy}</span>) },
  ];
  const without = ["Topic", "State", ...(state === "dead" ? ["Due"] : [])];
  return [topic, ...more, ...MESSAGE_COLUMNS.filter(({ name }) => !without.includes(name))];
}

const actions = (onDone: (message: string) => void): Column<Message> => ({
  name: "Change",
  cell: (message) => <MessageButtons message={message} onDone={onDone} />,
});

function MessageButtons({ message, onDone }: { readonly message: Message; readonly onDone: (text: string) => void }) {
  const [change, setChange] = useState<"resend" | "discard" | null>(null);
  const act = async (reason: string) => {
    if (change === null) return;
    const done = await changeMessage(message.id, change, reason);
    setChange(null);
    onDone(done.message);
  };
  return (
    <div class="actions">
      <button type="button" onClick={() => setChange("resend")}>
        Send again …
      </button>
      <button type="button" onClick={() => setChange("discard")}>
        Discard …
      </button>
      {change === null ? null : (
        <Confirm
          title={change === "resend" ? "Send again" : "Discard"}
          act={change === "resend" ? "Send it again" : "Discard it"}
          danger={change === "discard"}
          consequence={<Consequence message={message} change={change} />}
          onAct={act}
          onClose={() => setChange(null)}
        />
      )}
    </div>
  );
}

function Consequence({ message, change }: { readonly message: Message; readonly change: "resend" | "discard" }) {
  const ordered = message.orderBy === null ? "" : " What was sent behind it in its order comes after it.";
  return change === "resend" ? (
    <p>
      The message <strong>{message.topic}</strong> of {message.tenant} is due at once, with all its tries before it.
      Whoever had it already gets it twice, under the same id.{ordered}
    </p>
  ) : (
    <p>
      The message <strong>{message.topic}</strong> of {message.tenant} is deleted and will never be delivered. This
      cannot be taken back.{message.orderBy === null ? "" : " What was sent behind it in its order goes on without it."}
    </p>
  );
}
