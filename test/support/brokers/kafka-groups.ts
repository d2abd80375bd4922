import { array, bytes, int16, int32, int64, string, type WireReader } from "./kafka-wire.ts";

interface Group {
  generation: number;
  member: string;
}

const ILLEGAL_GENERATION = 22;

/**
 * Consumer groups of one member: whoever joins last is the group, leads it and gets all partitions; an earlier member is
 * told that its generation is over. A real coordinator waits for the others and for session time-outs first.
 */
export class KafkaGroups {
  readonly offsets = new Map<string, bigint>();
  readonly #groups = new Map<string, Group>();

  join(request: WireReader): Buffer {
    const name = request.string() ?? "";
    request.int32(); // session time-out
    const known = request.string() ?? "";
    request.string(); // protocol type
    const protocols = request.array(() => ({ name: request.string(), metadata: request.bytes() }));
    const generation = (this.#groups.get(name)?.generation ?? 0) + 1;
    const member = known === "" ? `member-${generation}` : known;
    this.#groups.set(name, { generation, member });
    const [first] = protocols;
    const itself = array([first], (protocol) =>
      Buffer.concat([string(member), bytes(protocol?.metadata ?? Buffer.alloc(0))]),
    );
    const head = [int16(0), int32(generation), string(first?.name ?? ""), string(member), string(member)];
    return Buffer.concat([...head, itself]);
  }

  sync(request: WireReader): Buffer {
    const error = this.#check(request);
    const assigned = request.array(() => ({ member: request.string(), assignment: request.bytes() }));
    return Buffer.concat([int16(error), bytes(assigned[0]?.assignment ?? Buffer.alloc(0))]);
  }

  heartbeat(request: WireReader): Buffer {
    return int16(this.#check(request));
  }

  commit(request: WireReader): Buffer {
    const group = request.string();
    request.int32(); // generation
    request.string(); // member
    request.int64(); // retention
    const topics = request.array(() => {
      const topic = request.string();
      const partitions = request.array(() => {
        const partition = request.int32();
        this.offsets.set(`${group} ${topic} ${partition}`, request.int64());
        request.string(); // metadata
        return partition;
      });
      return { topic, partitions };
    });
    return array(topics, ({ topic, partitions }) =>
      Buffer.concat([string(topic), array(partitions, (partition) => Buffer.concat([int32(partition), int16(0)]))]),
    );
  }

  fetchOffsets(request: WireReader): Buffer {
    const group = request.string();
    const topics = request.array(() => ({ topic: request.string(), partitions: request.array(() => request.int32()) }));
    return array(topics, ({ topic, partitions }) =>
      Buffer.concat([
        string(topic),
        array(partitions, (partition) => {
          const offset = this.offsets.get(`${group} ${topic} ${partition}`) ?? -1n;
          return Buffer.concat([int32(partition), int64(offset), string(""), int16(0)]);
        }),
      ]),
    );
  }

  #check(request: WireReader): number {
    const group = this.#groups.get(request.string() ?? "");
    const generation = request.int32();
    const member = request.string();
    return group?.generation === generation && group.member === member ? 0 : ILLEGAL_GENERATION;
  }
}
