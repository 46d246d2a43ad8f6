import type { Library, Surroundings } from './kit.ts';
import { run } from './suite.ts';

/** What the runner hands to a runtime that has files and processes, as JSON in its one argument. */
export interface Order {
  /** `file:` URL of the built package, with a final slash. */
  readonly dist: string;
  readonly redirecting: string;
  readonly engines: Surroundings['engines'];
  readonly seller: NonNullable<Surroundings['seller']>;
  /** A folder for databases. */
  readonly databases: string;
  readonly nodeDoor: boolean;
}

async function load(order: Order): Promise<Library> {
  const at = async (name: string): Promise<never> => (await import(`${order.dist}${name}.js`)) as never;
  return {
    core: await at('index'),
    events: await at('events'),
    fetch: await at('fetch'),
    memory: await at('memory'),
    registry: await at('registry'),
    rfc9421: await at('rfc9421'),
    sender: await at('sender'),
    sqlite: await at('sqlite'),
    ...(order.nodeDoor && { node: await at('node') }),
  };
}

function surroundings({ databases, engines, seller, redirecting }: Order): Surroundings {
  let count = 0;
  return { engines, seller, redirecting, database: () => `${databases}/${(count += 1)}.db` };
}

const order = JSON.parse(process.argv[2] ?? '') as Order;
const results = await run(await load(order), surroundings(order));
// oxlint-disable-next-line no-console -- this is how the runner hears of it
console.log(`RESULTS ${JSON.stringify(results)}`);
process.exit(0);
