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
 * Tells the suites in which a connection or topology can differ from another one that passes the whole contract.
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
