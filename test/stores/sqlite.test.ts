import { describe, it } from 'vitest';
import { describeStoreContract } from '../../src/testing/store-contract.ts';
import { inThisForm } from '../reliability/form.ts';
import { canDiffer, suitesOfContract } from './contract-suites.ts';
import { DRIVERS, sqliteHarness } from './sqlite-files.ts';

const CLAIMS = { transactions: true, persistent: true, inbox: true, registrations: true } as const;
const SUITES = suitesOfContract(CLAIMS);

/** The driver on which `npm test` runs all suites. */
const WHOLE = 'a path';

/** On a handle of somebody else's, `npm test` runs these; `npm run test:rows` the others. */
const CAN_DIFFER = canDiffer(SUITES, {
  'opening and closing': 'the handle is the owner’s, with its settings, and stays open',
  keyspaces: 'the driver turns text into UTF-8, and reads it back',
  '64 concurrent calls': 'another connection has the lock: the driver says BUSY in its own way',
  'inbox: list and inspect': 'bodies are BLOBs, and columns NULL: the driver says which values these are',
  'registrations: pages': 'text is compared as it is stored',
  'what survives a restart': 'instants are integers over 2 ** 32, and the file is another connection’s',
  transaction: 'the owner’s function writes by the handle inside the transaction',
});

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
