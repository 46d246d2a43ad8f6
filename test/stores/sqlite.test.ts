import { describe, it } from 'vitest';
import { describeStoreContract } from '../../src/testing/index.ts';
import { inThisForm } from '../reliability/form.ts';
import { canDiffer, suitesOfContract, SQLITE_CAN_DIFFER } from './contract-suites.ts';
import { DRIVERS, sqliteHarness } from './sqlite-files.ts';

const CLAIMS = { transactions: true, persistent: true, inbox: true, registrations: true } as const;
const SUITES = suitesOfContract(CLAIMS);

/** The driver on which `npm test` runs all suites. */
const WHOLE = 'a path';

/** On a handle of somebody else's, `npm test` runs these; `npm run test:rows` the others. */
const CAN_DIFFER = canDiffer(SUITES, SQLITE_CAN_DIFFER);

const suitesOn = (name: string): readonly string[] =>
  inThisForm([...SUITES.keys()], (suite) => name === WHOLE || CAN_DIFFER(suite));

describe.each(Object.keys(DRIVERS).filter((name) => suitesOn(name).length > 0))(
  'sqliteStore on %s',
  (name) => {
    const connect = DRIVERS[name] ?? String;
    const here = suitesOn(name);
    describeStoreContract(() => sqliteHarness(connect), {
      ...CLAIMS,
      describe: (suite, body) => here.includes(suite) && describe(suite, body),
      it,
    });
  },
);
