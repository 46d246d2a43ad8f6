import { describe, it } from 'vitest';
import { describeStoreContract } from '../../src/testing/index.ts';
import { inThisForm } from '../reliability/form.ts';
import { canDiffer, suitesOfContract } from './contract-suites.ts';
import { CONNECTIONS, sqliteHarness } from './sqlite-files.ts';

const CLAIMS = { transactions: true, persistent: true, inbox: true, registrations: true } as const;
const SUITES = suitesOfContract(CLAIMS);

/** The connection on which `npm test` runs all suites. */
const WHOLE = 'a path';

/** On a handle of somebody else's, `npm test` runs these; `npm run test:rows` the others. */
const CAN_DIFFER = canDiffer(SUITES, {
  'opening and closing': 'the handle is the owner’s, with its settings, and stays open',
  transaction: 'the owner’s function writes by the handle inside the transaction',
});

const suitesOn = (name: string): readonly string[] =>
  inThisForm([...SUITES.keys()], (suite) => name === WHOLE || CAN_DIFFER(suite));

describe.each(Object.keys(CONNECTIONS).filter((name) => suitesOn(name).length > 0))(
  'sqliteStore on %s',
  (name) => {
    const connect = CONNECTIONS[name] ?? String;
    const here = suitesOn(name);
    describeStoreContract(() => sqliteHarness(connect), {
      ...CLAIMS,
      describe: (suite, body) => here.includes(suite) && describe(suite, body),
      it,
    });
  },
);
