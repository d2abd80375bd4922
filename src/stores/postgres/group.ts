/** How far requests of one kind are merged. */
export interface GroupLimits {
  /** Most members of a group; at so many it goes at once. */
  readonly maxSize: number;
  /** Longest time a member gathers while the statement before is still under way, in milliseconds. */
  readonly maxDelayMs: number;
  /** Most that the members of one group may weigh together, in bytes; what is heavier by itself goes alone. */
  readonly maxBytes: number;
}

/** What a group has for one member: how to read its answer (which may throw), or that the member is to ask alone. */
export type Share<Answer> = (() => Answer) | "alone";

/** A kind of request that can be answered by itself and together with others. */
export interface Groupable<Member, Answer> {
  alone(member: Member): Promise<Answer>;
  /** One share a member, in their order. */
  together(members: readonly Member[]): Promise<readonly Share<Answer>[]>;
  /** Never less than the member adds to a group's statement, in bytes. */
  weigh(member: Member): number;
  /** Whether a group that failed so has certainly done nothing, so that its members can ask alone. */
  isUndone(error: unknown): boolean;
  /** Whether a group that failed so shows that there can be none here. */
  isImpossible(error: unknown): boolean;
  /** A member's own error, where the fate of its group is not known. */
  failure(error: unknown): unknown;
}

interface Waiting<Member, Answer> {
  readonly member: Member;
  readonly weight: number;
  resolve(answer: Answer | Promise<Answer>): void;
  reject(error: unknown): void;
}

/**
 * Merges requests that come while another of their kind is under way. The first goes at once, as it would without groups;
 * what comes meanwhile gathers until that one is answered, until there are enough, or until the longest delay is over. A
 * lone request therefore never waits, and under load groups grow by themselves. Each member gets its own answer or error.
 */
export function grouped<Member, Answer>(
  work: Groupable<Member, Answer>,
  limits: GroupLimits,
): (member: Member) => Promise<Answer> {
  let waiting: Waiting<Member, Answer>[] = [];
  let timer: NodeJS.Timeout | undefined;
  let underWay = 0;
  let isOff = false;

  const send = async <R>(statement: () => Promise<R>): Promise<R> => {
    underWay += 1;
    try {
      return await statement();
    } finally {
      underWay -= 1;
      if (waiting.length > 0) sendWaiting();
    }
  };
  const sendWaiting = () => {
    clearTimeout(timer);
    timer = undefined;
    const gathered = waiting;
    waiting = [];
    for (const members of parted(gathered, limits)) void sendGroup(members);
  };
  const sendGroup = async (members: readonly Waiting<Member, Answer>[]) => {
    const [first] = members;
    if (first !== undefined && members.length === 1) return first.resolve(send(() => work.alone(first.member)));
    try {
      const shares = await send(() => work.together(members.map(({ member }) => member)));
      for (const [index, one] of members.entries()) settle(work, one, shares[index] ?? "alone");
    } catch (error) {
      isOff ||= work.isImpossible(error);
      for (const one of members) {
        if (work.isUndone(error)) settle(work, one, "alone");
        else one.reject(work.failure(error));
      }
    }
  };
  return (member) => {
    if (isOff || underWay === 0) return send(() => work.alone(member));
    const weight = work.weigh(member);
    if (weight > limits.maxBytes) return work.alone(member);
    return new Promise((resolve, reject) => {
      waiting.push({ member, weight, resolve, reject });
      if (waiting.length >= limits.maxSize) sendWaiting();
      else timer ??= setTimeout(sendWaiting, limits.maxDelayMs);
    });
  };
}

function settle<Member, Answer>(
  work: Groupable<Member, Answer>,
  { member, resolve, reject }: Waiting<Member, Answer>,
  share: Share<Answer>,
): void {
  try {
    resolve(share === "alone" ? work.alone(member) : share());
  } catch (error) {
    reject(error);
  }
}

/** In their order, each part within the limits. */
function parted<Member, Answer>(
  gathered: readonly Waiting<Member, Answer>[],
  { maxSize, maxBytes }: GroupLimits,
): Waiting<Member, Answer>[][] {
  const parts: Waiting<Member, Answer>[][] = [];
  let bytes = Infinity;
  for (const one of gathered) {
    const open = parts.at(-1);
    if (open === undefined || open.length === maxSize || bytes + one.weight > maxBytes) {
      parts.push([one]);
      bytes = one.weight;
    } else {
      open.push(one);
      bytes += one.weight;
    }
  }
  return parts;
}
