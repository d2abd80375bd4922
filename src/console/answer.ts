import { OncekeyError } from "../core/errors.ts";
import { assetAnswer } from "./assets.ts";
import { type Answered, type Asked, emptyAnswer, jsonAnswer, streamAnswer } from "./exchange.ts";
import { failureAnswer } from "./failures.ts";
import { checkCsrf, checkJson, checkSameOrigin } from "./guard.ts";
import type { Live } from "./live.ts";
import type { ConsoleParts } from "./parts.ts";
import { bodyOf, textMember } from "./parts.ts";
import { badRequest, notFound, Refusal } from "./refusal.ts";
import { routeOf } from "./router.ts";
import { noteSignIn, sessionView } from "./routes/session.ts";
import type { Who } from "./sessions.ts";
import type { SignIn } from "./sign-in.ts";

/** What answers requests. */
export interface Desk {
  readonly parts: ConsoleParts;
  readonly live: Live;
  readonly assets: string;
  /** Where the console is reached, if not at what `Host` says. */
  readonly origin: string | null;
  /** Who asks; `null`: nobody that is known. */
  who(asked: Asked, active: boolean): Promise<Who | null>;
  /** `null`: the application's own authentication. */
  readonly signIn: SignIn | null;
  onError(error: unknown): void;
}

/** Answers one request. Never rejects. */
export async function answer(desk: Desk, asked: Asked): Promise<Answered> {
  try {
    if (asked.path.startsWith("/api/")) return await answerApi(desk, asked, asked.path.slice("/api/".length));
    if (asked.method === "GET" || asked.method === "HEAD") return await assetAnswer(desk.assets, asked.path);
    return emptyAnswer(405, [["allow", "GET, HEAD"]]);
  } catch (error) {
    return failureAnswer(error, desk.onError);
  }
}

async function answerApi(desk: Desk, asked: Asked, path: string): Promise<Answered> {
  const isChange = asked.method !== "GET";
  // Before anything else is looked at: what another site sends learns nothing.
  if (isChange) checkSameOrigin(asked, desk.origin);
  if (isChange && asked.method !== "DELETE") checkJson(asked);
  if (path === "session") return answerSession(desk, asked);
  const found = routeOf(asked.method, path);
  const isStream = asked.method === "GET" && path === "stream";
  if (found === null && !isStream) throw notFound("route");
  const who = await knownWho(desk, asked, !isStream && found?.route.background !== true && !isQuiet(asked));
  if (isStream) return openStream(desk, who);
  if (isChange) checkCsrf(asked, who);
  const call = { parts: desk.parts, asked, who, id: found?.id ?? "", tenant: who.operator.tenant };
  return jsonAnswer(200, await found?.route.handle(call));
}

/** The page asks again by itself, for what a person asked for once: that must not keep a session from ending. */
const isQuiet = (asked: Asked): boolean => asked.header("x-oncekey-quiet") !== null;

async function knownWho({ who, signIn }: Desk, asked: Asked, active: boolean): Promise<Who> {
  const known = await who(asked, active);
  if (known !== null) return known;
  const message = signIn === null ? "You are not signed in to the application." : "Sign in first.";
  throw new Refusal(401, "console_unauthenticated", `${message} Nothing was shown.`, {
    more: { signIn: signIn !== null },
  });
}

function openStream({ live }: Desk, who: Who): Answered {
  if (!live.hasRoom(who))
    throw new Refusal(429, "console_too_many", "Too many pages listen already. Close one.", { retryAfterS: 15 });
  return streamAnswer((stream) => live.open(who, stream));
}

async function answerSession(desk: Desk, asked: Asked): Promise<Answered> {
  switch (asked.method) {
    case "GET":
      return getSession(desk, asked);
    case "POST":
      return postSession(desk, asked);
    case "DELETE":
      return deleteSession(desk, asked);
    default:
      throw notFound("route");
  }
}

async function getSession(desk: Desk, asked: Asked): Promise<Answered> {
  const who = await desk.who(asked, true);
  if (who !== null) return jsonAnswer(200, sessionView(who));
  const message = desk.signIn === null ? "You are not signed in to the application." : "Sign in first.";
  return jsonAnswer(401, { error: { code: "console_unauthenticated", message }, signIn: desk.signIn !== null });
}

async function postSession({ signIn, parts }: Desk, asked: Asked): Promise<Answered> {
  if (signIn === null) throw badRequest("People sign in at the application, not here");
  const members = await bodyOf(asked);
  const [user, password] = [textMember(members, "user", 255), textMember(members, "password", 1_024)];
  if (user === undefined || password === undefined) throw badRequest('"user" and "password" are needed');
  const { who, cookie } = await signIn.enter({ user, password, secure: asked.secure });
  await noteSignIn(parts, who.operator);
  return jsonAnswer(200, sessionView(who), [["set-cookie", cookie]]);
}

async function deleteSession({ who, signIn }: Desk, asked: Asked): Promise<Answered> {
  if (signIn === null) throw badRequest("People sign out at the application, not here");
  const known = await who(asked, true);
  if (known !== null) checkCsrf(asked, known);
  return emptyAnswer(204, [["set-cookie", signIn.leave(asked)]]);
}

/** Raises `oncekey_config_invalid`. */
export function refuseOptions(what: string): never {
  throw new OncekeyError("oncekey_config_invalid", `createConsole: ${what}. Nothing was started.`);
}
