import type { Library, Surroundings } from './kit.ts';
import { run } from './suite.ts';

/** What the runner hands to a runtime that has files and processes, as JSON in its one argument. */
export interface Order {
  /** `file:` URL of the built package, with a final slash. */
  readonly dist: string;
  readonly redirecting: string;
  readonly engines: Surroundings['engines'];
  readonly seller: NonNullable<Surroundings['seller']>;
  /** A folder for databases; absent: no driver. */
  readonly databases?: string;
  /** Resolved URL of a driver where the runtime has none. */
  readonly driver?: string;
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

async function surroundings({ databases, driver, ...order }: Order): Promise<Surroundings> {
  const { engines, seller, redirecting } = order;
  const common = { engines, seller, redirecting };
  if (databases === undefined) return common;
  let count = 0;
  const file = (): string => `${databases}/${(count += 1)}.db`;
  if (driver === undefined) return { ...common, sqlite: file };
  const { default: Database } = (await import(driver)) as { default: new (file: string) => never };
  return { ...common, sqlite: () => new Database(file()) };
}

const order = JSON.parse(process.argv[2] ?? '') as Order;
const results = await run(await load(order), await surroundings(order));
// oxlint-disable-next-line no-console -- this is how the runner hears of it
console.log(`RESULTS ${JSON.stringify(results)}`);
process.exit(0);
