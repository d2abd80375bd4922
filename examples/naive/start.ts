import type { AddressInfo } from "node:net";
import { NAIVETIES, type Naivety, USUAL } from "./naiveties.ts";
import { createNaiveServer } from "./server.ts";

// A server to try `oncekey verify` on, with faults to choose:
//
//   node --import tsx examples/naive/start.ts                      the usual ones
//   node --import tsx examples/naive/start.ts none                 without any
//   node --import tsx examples/naive/start.ts looks-first,one-tenant

function chosen(given: string | undefined): readonly Naivety[] {
  if (given === undefined) return USUAL;
  const names = given === "none" ? [] : given.split(",");
  const isKnown = (name: string): name is Naivety => Object.hasOwn(NAIVETIES, name);
  const unknown = names.filter((name) => !isKnown(name));
  if (unknown.length > 0) throw new Error(`There is no such fault; there are ${Object.keys(NAIVETIES).join(", ")}.`);
  return names.filter(isKnown);
}

const naiveties = chosen(process.argv[2]);
const server = createNaiveServer({ naiveties });
server.listen(Number(process.env.PORT ?? "4010"), "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  for (const name of naiveties) console.error(`${name}: ${NAIVETIES[name]}`);
  console.log(`naive server ready http://127.0.0.1:${port}`);
});
