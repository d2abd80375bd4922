import { existsSync, readdirSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { join } from "node:path";
import { connect } from "amqplib";
import { freePort } from "../free-port.ts";
import { type BrokerServer, findProgram, makeHome, startProgram } from "./program.ts";

/** Redis, as Debian's package has it. Bulk strings over 1 MiB are refused, so that a test can send one. */
export async function startRedis(command: string, more: Readonly<Record<string, string>> = {}): Promise<BrokerServer> {
  const port = await freePort();
  const home = makeHome("redis");
  const ours = { port, bind: "127.0.0.1", dir: home.path, save: "", appendonly: "no", "proto-max-bulk-len": "1mb" };
  const settings = { ...ours, ...more };
  const flags = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const close = await startProgram(home, { command, flags, answers: () => says(port, "PING\r\n", "+PONG") });
  return { port, close };
}

/** A NATS server with JetStream, files below its home. */
async function startNats(command: string): Promise<BrokerServer> {
  const port = await freePort();
  const home = makeHome("nats");
  const lines = [
    `listen: "127.0.0.1:${port}"`,
    `jetstream { store_dir: "${home.path}/js", max_mem: 64M, max_file: 256M }`,
  ];
  const file = home.write("nats.conf", `${lines.join("\n")}\n`);
  const close = await startProgram(home, { command, flags: ["-c", file], answers: () => says(port, "", "INFO ") });
  return { port, close };
}

/** RabbitMQ without plugins. Its name server (epmd) is a child of ours: one that RabbitMQ starts would outlive it. */
async function startRabbitmq(command: string): Promise<BrokerServer> {
  const [port, distributionPort, epmdPort] = await Promise.all([freePort(), freePort(), freePort()]);
  const home = makeHome("rabbitmq");
  const path = (name: string) => join(home.path, name);
  const configuration = [
    `listeners.tcp.1 = 127.0.0.1:${port}`,
    "distribution.listener.interface = 127.0.0.1",
    "vm_memory_high_watermark.absolute = 512MB",
    "disk_free_limit.absolute = 50MB",
    // So that a test can send a message that is too large.
    "max_message_size = 65536",
  ];
  const epmd = { ERL_EPMD_ADDRESS: "127.0.0.1", ERL_EPMD_PORT: String(epmdPort) };
  const names = await startProgram(makeHome("epmd"), {
    command: findProgram("epmd") ?? "epmd",
    flags: [],
    env: epmd,
    answers: () => opens(epmdPort),
  });
  const env = {
    ...epmd,
    RABBITMQ_NODENAME: `oncekey${port}@localhost`,
    RABBITMQ_CONFIG_FILE: home.write("rabbitmq.conf", `${configuration.join("\n")}\n`),
    RABBITMQ_MNESIA_BASE: path("mnesia"),
    RABBITMQ_LOG_BASE: path("log"),
    RABBITMQ_ENABLED_PLUGINS_FILE: home.write("plugins", "[].\n"),
    RABBITMQ_PID_FILE: path("rabbitmq.pid"),
    RABBITMQ_DIST_PORT: String(distributionPort),
    // Erlang's schedulers spin for work, which costs whoever else is on the machine.
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: "+sbwt none +sbwtdcpu none +sbwtdio none",
    RABBITMQ_CONF_ENV_FILE: "/dev/null",
  };
  const broker = await startProgram(home, { command, flags: [], env, answers: () => logsIn(port) });
  const close = async () => {
    await broker();
    await names();
  };
  return { port, close };
}

async function logsIn(port: number): Promise<boolean> {
  if (!(await opens(port))) return false;
  try {
    await (await connect(`amqp://guest:guest@127.0.0.1:${port}`)).close();
    return true;
  } catch {
    return false;
  }
}

const opens = (port: number) => says(port, "", "");

/** Whether a server on the loopback accepts, and answers `sent` with something that begins with `answer`. */
function says(port: number, sent: string, answer: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectTcp(port, "127.0.0.1", () => (answer === "" ? end(true) : socket.write(sent)));
    const end = (verdict: boolean) => {
      socket.destroy();
      resolve(verdict);
    };
    socket.once("data", (chunk) => end(chunk.toString().startsWith(answer)));
    socket.once("error", () => end(false));
    socket.once("close", () => end(false));
  });
}

/** The scripts themselves: Debian's `rabbitmq-server` on the PATH insists on its own user and home. */
function findRabbitmq(): string | null {
  const base = "/usr/lib/rabbitmq/lib";
  const versions = existsSync(base) ? readdirSync(base) : [];
  const debian = versions
    .map((version) => join(base, version, "sbin", "rabbitmq-server"))
    .find((one) => existsSync(one));
  return debian ?? findProgram("rabbitmq-server");
}

interface Server {
  /** Package of Debian. */
  readonly package: string;
  readonly find: () => string | null;
  readonly start: (command: string) => Promise<BrokerServer>;
}

/** The brokers that are real servers. */
export const servers = {
  rabbitmq: { package: "rabbitmq-server", find: findRabbitmq, start: startRabbitmq },
  nats: { package: "nats-server", find: () => findProgram("nats-server"), start: startNats },
  redis: { package: "redis-server", find: () => findProgram("redis-server"), start: (command) => startRedis(command) },
} satisfies Readonly<Record<string, Server>>;

/** One of the brokers that are real servers. */
export type BrokerName = keyof typeof servers;

/** Starts one. Raises what to install where it is missing. */
export async function startBroker(name: BrokerName): Promise<BrokerServer> {
  const command = servers[name].find();
  if (command === null) throw new Error(missingBroker(name) ?? "It was removed just now.");
  return servers[name].start(command);
}

/** What to install, or `null`: it is there. */
export function missingBroker(name: BrokerName): string | null {
  const { find, package: debian } = servers[name];
  return find() === null ? `${debian} is not installed (Debian: apt-get install ${debian})` : null;
}
