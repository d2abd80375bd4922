/** What a plugin of Stryker's instrumenter sees of a place in the syntax tree, as far as it is used here. */
interface Place {
  readonly node: {
    readonly type: string;
    readonly value?: unknown;
    readonly quasis?: readonly { readonly value: { readonly raw: string } }[];
  };
}

/** Three words in a row. */
const WORDS = /[a-z]+,? [a-z]+,? [a-z]+/i;

/** Whether a text is meant for people. */
function isProse(text: string): boolean {
  return WORDS.test(text);
}

function textOf({ node }: Place): string | null {
  if (node.type === "StringLiteral") return String(node.value);
  return node.type === "TemplateLiteral" ? (node.quasis ?? []).map(({ value }) => value.raw).join("x") : null;
}

/**
 * Leaves text for people alone: an error's message may say the same in other words, and no test should forbid it. Stryker
 * loads the plugin by this name; it shows such mutants as ignored.
 */
export const strykerPlugins = [
  {
    kind: "Ignore",
    name: "prose",
    value: {
      shouldIgnore(place: Place): string | undefined {
        const text = textOf(place);
        return text !== null && isProse(text) ? "text for people" : undefined;
      },
    },
  },
];
