import { type Canary, integration, memoryCase, postgresCase, unit } from "../canary.ts";

const OUTBOX = "src/stores/memory/outbox.ts";

/** Breaks of what is sent and of what arrives: outbox, relay, inbox, numbers, webhooks. */
export const MESSAGES: readonly Canary[] = [
  {
    id: "settled-unfenced",
    what: "a relay that lost its lease settles the message all the same",
    edits: [
      {
        file: OUTBOX,
        find: "row.fence === null || !sameDigest(row.fence, fence)) return false;",
        replace: "row.fence === null || fence.length === 0) return false;",
      },
      { file: OUTBOX, find: 'import { sameDigest } from "../../core/fingerprint.ts";\n', replace: "" },
    ],
    caughtBy: [memoryCase("a fence that does not hold the message settles nothing")],
  },
  ...(["outbox_delivered", "outbox_postpone", "outbox_renew", "outbox_bury"] as const).map(
    (statement): Canary => ({
      id: `settled-unfenced-${statement}`,
      what: `no fence test in ${statement}.sql`,
      edits: [
        {
          file: `sql/statements/${statement}.sql`,
          find: "WHERE id = $1::text AND fence = $2::bytea AND",
          replace: "WHERE id = $1::text AND $2::bytea IS NOT NULL AND",
        },
      ],
      caughtBy: [
        postgresCase("a fence that does not hold the message settles nothing, nor does any fence of a settled one"),
      ],
    }),
  ),
  {
    id: "sent-outside",
    what: "a message is sent although its transaction rolls back",
    edits: [
      {
        file: OUTBOX,
        find: "    open.messages.set(message.id, {\n",
        replace: "    tables.messages.set(message.id, {\n",
      },
    ],
    caughtBy: [memoryCase("a message of a transaction that was rolled back is never claimed")],
  },
  {
    id: "order-ignored",
    what: "messages of one order are delivered beside each other",
    edits: [
      {
        file: OUTBOX,
        find: "const isFirst = (row: MessageRow) => row.orderBy === null || firsts.get(orderKey(row)) === row.seq;",
        replace: "const isFirst = (row: MessageRow) => row.orderBy === null || firsts.size > 0;",
      },
    ],
    caughtBy: [
      memoryCase("of one order only the first that is not delivered is claimed"),
      unit("relay-order", "are delivered one after the other"),
    ],
  },
  {
    id: "order-unlocked",
    what: "senders of one order do not wait for each other's commit",
    edits: [
      {
        file: "sql/statements/send.sql",
        find: "ELSE pg_advisory_xact_lock($12::bigint) IS NOT NULL END AS taken",
        replace: "ELSE $12::bigint IS NOT NULL END AS taken",
      },
    ],
    caughtBy: [postgresCase("a second sender of one order waits for the first one's commit")],
  },
  {
    id: "relay-asleep",
    what: "a relay that slept through its lease publishes what another one has",
    edits: [
      {
        file: "src/downstream/deliver.ts",
        find: '  if (clock.monotonicMs() - claimSentAtMs >= leaseMs) return "lost";\n',
        replace: "",
      },
    ],
    caughtBy: [unit("relay-delivery", "sends nothing when its lease was over before it could begin")],
  },
  {
    id: "relay-poisoned",
    what: "a message that ends its relay is delivered for ever",
    edits: [
      {
        file: "src/downstream/deliver.ts",
        find: '  if (message.attempt > desk.maxAttempts) return { published: dead("none of its deliveries came to an end") };\n',
        replace: "",
      },
    ],
    caughtBy: [unit("relay-delivery", "gives up a message whose relays die before any delivery")],
  },
  {
    id: "delivered-on-throw",
    what: "a publisher that throws has delivered",
    edits: [
      {
        file: "src/downstream/deliver.ts",
        find: "    const { aborted, reason } = hold.signal;\n",
        replace:
          '    const { aborted, reason } = hold.signal;\n    if (!aborted) return { published: { kind: "delivered" } };\n',
      },
    ],
    caughtBy: [unit("relay-delivery", "takes a throw, even at once, and an answer that is none for a failed delivery")],
  },
  {
    id: "message-id-fresh",
    what: "a message gets another id on every attempt",
    edits: [
      {
        file: "src/core/message.ts",
        find: "const parts = [entry.id, entry.seed, recoveryPoint, String(index)];",
        replace: "const parts = [entry.id, entry.seed, recoveryPoint, String(index), String(Math.random())];",
      },
    ],
    caughtBy: [integration("engine-drivers", "on pg…a message keeps its id when")],
  },
  {
    id: "arrival-unremembered",
    what: "the last insert of a delivery does not decide: a second transaction takes it in, too",
    edits: [
      {
        file: "src/stores/memory/arrivals.ts",
        find: "    if (knownDeliveries(tables, [key], open).length > 0) throw fasterElsewhere();\n",
        replace: "",
      },
    ],
    caughtBy: [memoryCase("even without looking at the locks, of arrivals that race one is accepted")],
  },
  {
    id: "delivery-forgotten",
    what: "a delivery is forgotten as soon as it is remembered",
    edits: [
      {
        file: "sql/statements/accept.sql",
        find: "clock_timestamp() + keep_ms * interval '1 millisecond', decode(digest, 'hex')",
        replace: "clock_timestamp() + 0 * keep_ms * interval '1 millisecond', decode(digest, 'hex')",
      },
    ],
    caughtBy: [
      postgresCase("an accepted delivery is remembered with its value, inside transactions and outside"),
      { lab: "lab/outbox.ts", options: ["--messages", "400", "--kills", "6"], check: "two effects" },
    ],
  },
  {
    id: "arrival-looked-up-early",
    what: "a delivery is looked up before its lock only",
    edits: [
      {
        file: "src/engine/consume.ts",
        find: "      const [known] = await session.deliveries([digest]);\n      if (known !== undefined) return leave(settled(remembered<Value>(context, known, rules, arrived)));\n",
        replace: "",
      },
    ],
    caughtBy: [unit("mutants-inbox", "a delivery that somebody took in between look-up and lock")],
  },
  {
    id: "arrival-acked-early",
    what: "a lost COMMIT of a delivery is acknowledged",
    edits: [
      {
        file: "src/engine/consume.ts",
        find: "  if (known === undefined) throw lost;\n",
        replace: '  if (known === undefined) return settled({ kind: "done", value: kept?.value as Value });\n',
      },
    ],
    caughtBy: [integration("inbox-lost-commit", "is called unknown; its redelivery has the effect, once")],
  },
  {
    id: "gap-accepted",
    what: "a gap in a producer's numbers is accepted",
    edits: [
      {
        file: "src/core/sequence.ts",
        find: "  if (sequence === expected) return",
        replace: "  if (sequence >= expected) return",
      },
    ],
    caughtBy: [
      unit("inbox-numbered", "one after a gap is refused"),
      unit("core-sequence", "after a gap is out of order"),
    ],
  },
  {
    id: "epoch-ignored",
    what: "an older instance of a producer is not fenced out",
    edits: [
      {
        file: "src/core/sequence.ts",
        find: '  if (last !== null && epoch < last.epoch) return { kind: "fenced", epoch: last.epoch };\n',
        replace: "",
      },
    ],
    caughtBy: [unit("inbox-numbered", "begins at 0, also in a new epoch, which fences the lower ones out")],
  },
  {
    id: "number-unmoved",
    what: "a producer's number is moved on without comparing it",
    edits: [
      {
        file: "src/stores/memory/arrivals.ts",
        find: "        if (!isSameNumber(lastNumber(tables, open, key), from)) throw fasterElsewhere();\n",
        replace: "        void [from, isSameNumber];\n",
      },
    ],
    caughtBy: [memoryCase("of moves of one producer that race from the same number, one counts")],
  },
  {
    id: "older-state-wins",
    what: "an equal or older version of a subject is taken for a newer one",
    edits: [
      {
        file: "sql/statements/move_subject.sql",
        find: "WHERE s.version < excluded.version",
        replace: "WHERE s.version <> excluded.version",
      },
    ],
    caughtBy: [postgresCase("a subject moves to newer versions only")],
  },
  {
    id: "webhook-unverified",
    what: "a webhook with a wrong signature acts",
    edits: [
      {
        file: "src/inbound/webhooks/scheme.ts",
        find: "if (given.length === expected.length && timingSafeEqual(given, expected)) fits = true;",
        replace: "if (given.length === expected.length && timingSafeEqual(given, given)) fits = true;",
      },
    ],
    caughtBy: [unit("webhook-schemes", "does not fit when any byte of the body, or the signature, was changed")],
  },
];
