import { describeStoreContract, type StoreContractOptions } from '../../src/testing/index.ts';

/** What a store claims beyond the ordinary. */
type Claims = Omit<StoreContractOptions, 'describe' | 'it'>;

/** The suites of the contract for such a store, with their numbers of cases. */
export function suitesOfContract(claims: Claims): ReadonlyMap<string, number> {
  const suites = new Map<string, number>();
  let cases = 0;
  const harness = (): never => {
    throw new Error('these are only counted');
  };
  describeStoreContract(harness, {
    ...claims,
    describe: (name, body) => {
      cases = 0;
      body();
      suites.set(name, cases);
    },
    it: () => (cases += 1),
  });
  return suites;
}

/**
 * Tells the suites in which a driver or topology can differ from another one that passes the whole contract.
 * @param reasons by the name of the suite.
 * @throws Error for a name that no suite has.
 */
export function canDiffer(
  suites: ReadonlyMap<string, number>,
  reasons: Readonly<Record<string, string>>,
): (suite: string) => boolean {
  const unknown = Object.keys(reasons).filter((name) => !suites.has(name));
  if (unknown.length > 0) throw new Error(`no suite of the contract is named ${unknown.join(', ')}`);
  return (suite) => Object.hasOwn(reasons, suite);
}

/** Suites in which a driver of SQLite, or a handle of somebody else's, can differ from `node:sqlite` on a path. */
export const SQLITE_CAN_DIFFER: Readonly<Record<string, string>> = {
  'opening and closing': 'the handle is the owner’s, with its settings, and stays open',
  keyspaces: 'the driver turns text into UTF-8, and reads it back',
  '64 concurrent calls': 'another connection has the lock: the driver says BUSY in its own way',
  'inbox: list and inspect': 'bodies are BLOBs, and columns NULL: the driver says which values these are',
  'registrations: pages': 'text is compared as it is stored',
  'what survives a restart': 'instants are integers over 2 ** 32, and the file is another connection’s',
  transaction: 'the owner’s function writes by the handle inside the transaction',
};
