import { type Answer, isRefusal, isSameBytes, isSuccess, type Reply, told } from "../answer.ts";
import { type Api, type Change, freshKey } from "../api.ts";
import { type Baseline, begin, type Case, cannotTell, type Finding, fail, notApplicable, pass } from "../case.ts";
import { type Address, credentialNames, type Target } from "../target.ts";

/** What this change gets under a key of its own: what the API would say if the key were not known. */
const control = (api: Api, change: Change): Promise<Reply> => api.send(freshKey(api.target), change);

const otherTenant: Case = {
  id: "other-tenant",
  title: "Another tenant with the same key gets nothing of the first one's answer",
  level: "safety",
  why: "Keys are guessed, logged and copied. Looked up without the caller, a key hands one customer's data to another, or refuses him because of a stranger.",
  sends: 2,
  runs: 2,
  excluded: ({ otherHeaders }) =>
    otherHeaders === null ? "Needs --other-header: another tenant's credentials." : null,
  async run(api, base) {
    const change = { headers: api.target.otherHeaders ?? [] };
    const usual = await control(api, change);
    if (usual.kind === "none" || [401, 403].includes(usual.status)) {
      return cannotTell(`The other credentials got ${told(usual)} with a key of their own.`);
    }
    return judgeStranger(base, usual, await api.send(base.key, change), "tenant");
  },
};

const otherOperation: Case = {
  id: "other-operation",
  title: "The same key on another operation never gets the first one's answer",
  level: "safety",
  why: 'A client that numbers its keys per object uses one for "create" and for "refund". Answering the refund with the creation\'s receipt means that it is never made.',
  sends: 2,
  runs: 2,
  excluded: ({ otherOperation }) => (otherOperation === null ? "Needs --other-url: another operation." : null),
  async run(api, base) {
    const { otherOperation, dialect } = api.target;
    if (otherOperation === null) return cannotTell("There is no other operation.");
    const { url, body } = otherOperation;
    const change = { url, ...(body === null ? {} : { body }) };
    const usual = await control(api, change);
    const reply = await api.send(base.key, change);
    const isRefused = isRefusal(reply) && !(usual.kind === "answer" && reply.status === usual.status);
    if (!isRefused) return judgeStranger(base, usual, reply, "operation");
    const said = `With a key of its own ${told(usual)}, with the first one's ${told(reply)}.`;
    return (dialect.otherOperation === "own" ? fail : pass)(`${said} It was refused as another request.`);
  },
};

/** Whoever comes with a known key from elsewhere must be answered as with an unknown one. */
function judgeStranger({ first, telling }: Baseline, usual: Reply, reply: Reply, who: string): Finding {
  const said = `The other ${who} got ${told(usual)} with a key of its own, ${told(reply)} with the first one's.`;
  if (usual.kind === "none" || reply.kind === "none") return fail(said);
  if (reply.status !== usual.status) return fail(`${said} The known key made a difference.`);
  if (!isSuccess(reply)) return pass(said);
  if (isSameBytes(first, reply)) {
    return telling ? fail(`${said} It is the first one's answer.`) : cannotTell(`${said} All answers are alike here.`);
  }
  return pass(said);
}

const unauthenticated: Case = {
  id: "replay-unauthenticated",
  title: "A replay needs credentials, as the first request did",
  level: "safety",
  why: "A store that answers before the caller is checked gives a stored result to anybody who has seen the key, in a log or a URL.",
  sends: 2,
  runs: 0,
  excluded: (target) =>
    credentialNames(target).length === 0 ? "Needs credentials among the --header lines, to leave them out." : null,
  async run(api, base) {
    const change = { leave: credentialNames(api.target) };
    const usual = await control(api, change);
    if (isSuccess(usual)) return notApplicable(`The API asks nobody for credentials: ${told(usual)} without any.`);
    return judgeUnauthorised(base, usual, await api.send(base.key, change), "Without credentials");
  },
};

function judgeUnauthorised({ first }: Baseline, usual: Reply | null, reply: Reply, who: string): Finding {
  const control = usual === null ? "" : `an unknown key gets ${told(usual)}, `;
  const said = `${who} ${control}the known one gets ${told(reply)}.`;
  if (!isRefusal(reply)) return fail(`${said}${isStored(first, reply) ? " It is the stored answer." : ""}`);
  return pass(said);
}

const isStored = (first: Answer, reply: Reply): boolean => reply.kind === "answer" && isSameBytes(first, reply);

const revoked: Case = {
  id: "replay-revoked",
  title: "Credentials that were revoked get no replay any more",
  level: "safety",
  why: "A key outlives the right to use it. Whoever was locked out must not read stored results until their retention ends.",
  sends: 3,
  runs: 1,
  excluded: ({ revocation, revokedHeaders }) =>
    revocation === null && revokedHeaders === null
      ? "Needs --revoke-url and --restore-url, or --revoked-header."
      : null,
  run: (api, base) =>
    api.target.revocation === null ? withRevokedHeaders(api, base) : whileRevoked(api, base, api.target.revocation),
};

async function withRevokedHeaders(api: Api, base: Baseline): Promise<Finding> {
  const change = { headers: api.target.revokedHeaders ?? [] };
  const usual = await control(api, change);
  if (isSuccess(usual))
    return cannotTell(`The revoked credentials are accepted: ${told(usual)} with a key of their own.`);
  return judgeUnauthorised(base, usual, await api.send(base.key, change), "With revoked credentials");
}

async function whileRevoked(
  api: Api,
  base: Baseline,
  { revoke, restore }: NonNullable<Target["revocation"]>,
): Promise<Finding> {
  const { key, first } = await begin(api);
  const [tried] = await Promise.allSettled([judgeRevoked(api, { ...base, key, first }, revoke)]);
  // Whatever came, an error, nothing or the end of the run: what was taken away, or may have been, is given back.
  if (!isOk(await api.post(restore))) return fail("The restore URL did not give the credentials back.");
  if (tried.status === "rejected") throw tried.reason;
  const finding = tried.value;
  if (finding.verdict !== "pass") return finding;
  const after = await api.settle(key);
  return isSuccess(after)
    ? pass(`${finding.seen} Restored, it got ${told(after)}.`)
    : fail(`${finding.seen} Restored, it still got ${told(after)}.`);
}

async function judgeRevoked(api: Api, base: Baseline, revoke: Address): Promise<Finding> {
  const status = await api.post(revoke);
  if (!isOk(status)) return cannotTell(`The revoke URL answered ${status ?? "nothing"}.`);
  return judgeUnauthorised(base, null, await api.send(base.key), "Once revoked");
}

const isOk = (status: number | null): boolean => status !== null && status >= 200 && status < 300;

/** Whose key it is. */
export const callerCases: readonly Case[] = [otherTenant, otherOperation, unauthenticated, revoked];
