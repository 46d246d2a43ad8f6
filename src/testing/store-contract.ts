// Registers the test suite that every store must pass. The features that a store has decide which cases run. The cases
// are in store-contract/. The entry `proto-webhooks/testing` exports the suite, for tests of a store of one's own.
import assert from 'node:assert/strict';
import { capCases, expiryCases } from './store-contract/caps.ts';
import { clockBackCases, clockCases } from './store-contract/clock.ts';
import { concurrencyCases, transactionCases, transactionReportCases } from './store-contract/concurrency.ts';
import { type StoreContractOptions, type StoreFactory, type Cases, withKit } from './store-contract/kit.ts';
import {
  identityCases,
  keyspaceCases,
  lastingIdentityCases,
  lifecycleCases,
  notificationCases,
  persistenceCases,
} from './store-contract/keyspaces.ts';
import { inboxDeadCases, inboxOperatorCases } from './store-contract/inbox-operator.ts';
import { inboxCases, inboxDueCases, inboxTaskCases } from './store-contract/inbox-ends.ts';
import { inboxLeaseCases } from './store-contract/inbox-lease.ts';
import { leaseCases, reportCases } from './store-contract/leases.ts';
import { nonceCases } from './store-contract/nonces.ts';
import { endCases, terminalCases } from './store-contract/ends.ts';
import { orderCases, taskCases } from './store-contract/task-order.ts';
import { recordCases, replayCases, resendCases } from './store-contract/records.ts';
import {
  lastingRegistrationCases,
  registrationCases,
  registrationPageCases,
} from './store-contract/registration-rows.ts';
import { reportWindowCases } from './store-contract/report-windows.ts';
import { stateCases } from './store-contract/states.ts';
import { registrationDueCases } from './store-contract/registrations-due.ts';
import { toldCases } from './store-contract/two-channels.ts';
import { suspectCases } from './store-contract/suspects.ts';

export type { StoreContractOptions, StoreEffects, StoreFactory, StoreHarness } from './store-contract/kit.ts';

const SUITES: Readonly<Record<string, Cases>> = {
  'opening and closing': lifecycleCases,
  'accept, rule 1: nonces': nonceCases,
  'accept, rule 2: the event is known': recordCases,
  'accept, rule 3: order': orderCases,
  'accept, rule 3: a second terminal status': terminalCases,
  'one end of a task (edition 3.2)': endCases,
  'accept, rule 4: caps': capCases,
  'accept, rule 5: tasks never overlap': taskCases,
  'accept in inbox mode': inboxCases,
  'accept sent again': resendCases,
  'retries of a failing event': replayCases,
  'notification ids': notificationCases,
  'final reports': reportCases,
  'leases: complete, fail, renew': leaseCases,
  expiry: expiryCases,
  'the store’s clock': clockCases,
  keyspaces: keyspaceCases,
  '64 concurrent calls': concurrencyCases,
  'identity of the store': identityCases,
};

const INBOX_SUITES: Readonly<Record<string, Cases>> = {
  'inbox: leases of workers': inboxLeaseCases,
  'inbox: overdue events': inboxDueCases,
  'a clock that is set back': clockBackCases,
  'inbox: tasks and their order': inboxTaskCases,
  'inbox: list and inspect': inboxOperatorCases,
  'inbox: redrive and discard': inboxDeadCases,
  'inbox: crashes and suspects': suspectCases,
};

const REGISTRATION_SUITES: Readonly<Record<string, Cases>> = {
  'registrations: rows and plans': registrationCases,
  'registrations: due rows': registrationDueCases,
  'registrations: pages': registrationPageCases,
  'a task reported by several channels': toldCases,
  'report windows': reportWindowCases,
  'states of things': stateCases,
};

/**
 * Registers the tests that every store must pass. They check the rules of `Store` on two handles of one store, under
 * a clock that the suite moves. Use it to test a store that you wrote.
 * @param factory creates a new, empty store for each test.
 * @param options `describe` and `it` of vitest, jest or `node:test`, and the optional features of the store.
 *   Assertions are those of `node:assert`.
 * @example
 * ```ts
 * import { describeStoreContract, type StoreFactory } from 'proto-webhooks/testing';
 * import { describe, it } from 'node:test';
 *
 * export function testStore(openTwoHandles: StoreFactory): void {
 *   describe('my store', () => describeStoreContract(openTwoHandles, { describe, it, inbox: true }));
 * }
 * ```
 */
export function describeStoreContract(factory: StoreFactory, options: StoreContractOptions): void {
  for (const [name, cases] of Object.entries(suitesOf(options))) {
    describeCases(name, cases, factory, options);
  }
}

/**
 * Returns the test suites for a store: those for all stores, and one for each optional feature that the options
 * declare. For the other features but `persistent` a case checks that the store does not have them.
 */
function suitesOf({
  transactions,
  persistent,
  inbox,
  registrations,
}: StoreContractOptions): Readonly<Record<string, Cases>> {
  const lasting = registrations && lastingRegistrationCases;
  return {
    ...SUITES,
    ...(inbox ? INBOX_SUITES : { inbox: NO_INBOX }),
    ...(registrations ? REGISTRATION_SUITES : { registrations: NO_REGISTRATIONS }),
    ...(persistent && {
      'what survives a restart': { ...persistenceCases, ...lastingIdentityCases, ...lasting },
    }),
    transaction: transactions
      ? { ...transactionCases, ...(registrations && transactionReportCases) }
      : NO_TRANSACTION,
  };
}

function describeCases(
  name: string,
  cases: Cases,
  factory: StoreFactory,
  { describe, it }: StoreContractOptions,
): void {
  describe(name, () => {
    for (const [rule, run] of Object.entries(cases)) it(rule, () => withKit(factory, run));
  });
}

const NO_TRANSACTION: Cases = {
  'the store has none, so the method is absent': async ({ a, b }) => {
    assert.ok(!('transaction' in a) && !('transaction' in b));
  },
};

const NO_INBOX: Cases = {
  'the store has none, so the member is absent': async ({ a, b }) => {
    assert.equal(a.inbox, undefined);
    assert.equal(b.inbox, undefined);
  },
};

const NO_REGISTRATIONS: Cases = {
  'the store has none, so the member is absent': async ({ a, b }) => {
    assert.equal(a.registrations, undefined);
    assert.equal(b.registrations, undefined);
  },
};
