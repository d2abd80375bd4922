import {
  changeLayout,
  type LayoutName,
  type LayoutOptions,
  type Maintained,
  maintainLayout,
  type StoreLayout,
  storeLayout,
} from "../stores/postgres/index.ts";
import type { Command, Report } from "./command.ts";
import { type CommandLine, named, UsageError } from "./command-line.ts";
import { type Database, databaseOptions, withStore } from "./database.ts";
import { givenDuration } from "./given.ts";
import { aligned } from "./layout.ts";
import { layoutRows, partitionRows } from "./store-layout-text.ts";

const ACTIONS = ["plain", "partitioned", "maintain"] as const;
type Action = (typeof ACTIONS)[number];

/** `oncekey layout`: where outcomes lie, and its change beside traffic. */
export const layoutCommand: Command = {
  summary: "show or change where outcomes lie: with their entries, or in partitions",
  about: `Without an action it shows the layout and its partitions. "partitioned" lets outcomes go into partitions by the
end of their retention, which are dropped whole, for high volume; "plain" lets them stay with their entries again.
Either is one commit, beside traffic: what is stored stays where it is and is found. "maintain" drops what is past and
makes what is to come, as every worker does whose role owns the tables. Deploy a release that has this command
everywhere before the change to "partitioned": older ones are refused from then on. Needs the role that owns the
tables, PostgreSQL 14 and READ COMMITTED.`,
  operands: [],
  more: "action",
  options: {
    width: { value: "DURATION", meaning: "what one partition spans; default: as before, 1d at first" },
    retention: {
      value: "DURATION",
      meaning: "the longest retention to make partitions for; default: as before, 1d at first",
    },
    ...databaseOptions,
  },
  examples: ["oncekey layout", "oncekey layout partitioned --width 1d --retention 2d", "oncekey layout plain"],
  run(line) {
    const action = actionOf(line);
    const times = timesOf(line, action);
    return withStore(line, (_store, database) => act(database, action, times));
  },
};

function actionOf({ operands }: CommandLine): Action | undefined {
  const [given, ...others] = operands;
  if (others.length > 0) throw new UsageError("Only one action can be taken at a time.");
  const action = ACTIONS.find((known) => known === given);
  if (given !== undefined && action === undefined) {
    throw new UsageError(`There is no ${named("action", given)}: partitioned, plain or maintain.`);
  }
  return action;
}

function timesOf(line: CommandLine, action: Action | undefined): LayoutOptions {
  const widthMs = givenDuration(line, "width");
  const retentionMs = givenDuration(line, "retention");
  if (action !== "partitioned" && (widthMs ?? retentionMs) !== undefined) {
    throw new UsageError("--width and --retention belong to: oncekey layout partitioned.");
  }
  return { ...(widthMs !== undefined && { widthMs }), ...(retentionMs !== undefined && { retentionMs }) };
}

async function act(database: Database, action: Action | undefined, times: LayoutOptions): Promise<Report> {
  const { driver, schema } = database;
  if (action === undefined) return shown(await storeLayout(driver, { schema }), {}, "");
  if (action !== "maintain") return changed(await changeLayout(driver, action, { ...times, schema }), action);
  const upkeep = await maintainLayout(driver, { schema });
  return shown(await storeLayout(driver, { schema }), { upkeep }, `${upkeepText(upkeep)}\n\n`);
}

function changed(layout: StoreLayout, to: LayoutName): Report {
  const rest =
    to === "plain" && layout.guarded ? " The partitions stay until they are past; keep a worker running." : "";
  return shown(
    layout,
    {},
    `Outcomes go ${to === "plain" ? "with their entries" : "into partitions"} from now on.${rest}\n\n`,
  );
}

function upkeepText(upkeep: Maintained): string {
  switch (upkeep.kind) {
    case "idle":
      return "The layout is plain; there is nothing to look after.";
    case "not_owner":
      return "This role does not own the tables; nothing was changed. Run it as the role that does.";
    case "busy":
      return "Another maintainer is at it; nothing was changed.";
    case "maintained":
      return `Partitions made: ${upkeep.created}, dropped: ${upkeep.dropped}.`;
  }
}

function shown(layout: StoreLayout, also: object, head: string): Report {
  const partitions = layout.partitions.length === 0 ? "" : `\npartitions\n${aligned(partitionRows(layout), "  ")}`;
  return { exitCode: 0, data: { layout, ...also }, text: `${head}${aligned(layoutRows(layout))}${partitions}` };
}
