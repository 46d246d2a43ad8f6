import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import {
  type CallSeller,
  createRegistrations,
  type JsonObject,
  type RegistrationErrorCode,
  type SubscriptionRequest,
} from '../../src/registrations/index.ts';
import type { Row } from './row.ts';

const SECRET = 'a-secret-of-forty-characters-and-no-more';
const OTHER = 'another-secret-of-forty-characters-more-';
const REQUEST = { agentUrl: 'https://seller.example/mcp', taskType: 'create_media_buy', arguments: {} };

/** On one store: a process with other secrets sees what one before has made. */
const registering = () => {
  const state = createMemoryState();
  return (secret = SECRET, more: { readonly maxOpen?: number } = {}) =>
    createRegistrations({
      store: memoryStore({ state }),
      baseUrl: 'https://buyer.example/webhooks',
      secrets: [secret],
      ...more,
    });
};

const thrownBy = (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error);

/** A seller whose account has these entries. */
const listing =
  (...entries: readonly JsonObject[]): CallSeller =>
  async () => ({ accounts: [{ account_id: 'acc-1', notification_configs: entries }] });

const subscribing = (call: CallSeller, request: Partial<SubscriptionRequest> = {}): Promise<unknown> =>
  thrownBy(
    createRegistrations({
      call,
      store: memoryStore(),
      baseUrl: 'https://buyer.example/webhooks',
      secrets: [SECRET],
    }).subscribe({
      agentUrl: REQUEST.agentUrl,
      account: { account_id: 'acc-1' },
      eventTypes: ['creative.purged'],
      ref: 'creatives',
      ...request,
    }),
  );

/** Every code of `RegistrationError`: how it comes about. */
export const REGISTRATIONS: Readonly<Record<RegistrationErrorCode, Row<unknown>>> = {
  request_invalid: {
    test: () => thrownBy(registering()().create({ ...REQUEST, taskType: 'create a media buy' })),
    message: 'taskType: is not the name of an operation',
  },
  request_too_large: {
    test: () => thrownBy(registering()().create({ ...REQUEST, ref: 'x'.repeat(1025) })),
    message: 'ref: 1025 bytes',
  },
  answer_invalid: {
    test: async () => {
      const registration = await registering()().create(REQUEST);
      return thrownBy(registration.settle('Internal Server Error'));
    },
    message: 'The answer is not a plain object',
  },
  too_many_open: {
    test: async () => {
      const registrations = registering()(SECRET, { maxOpen: 1 });
      await registrations.create(REQUEST);
      return thrownBy(registrations.create(REQUEST));
    },
    message: '1 operations of https://seller.example/mcp have not ended',
  },
  url_in_use: {
    test: async () => {
      const registrations = registering()();
      await registrations.create(REQUEST);
      const [url] = (await registrations.state()).urls;
      return thrownBy(registrations.retire(url ?? ({} as never)));
    },
    message: 'url: https://buyer.example/webhooks/… is not quiet: 1 calls (',
  },
  foreign_credentials: {
    test: () => subscribing(listing({ subscriber_id: 'theirs', authentication: { schemes: ['Bearer'] } })),
    message: 'the subscription "theirs" of somebody else has credentials, which the seller never shows',
  },
  exclusive_required: {
    test: () => subscribing(listing(), { account: undefined }),
    message: 'If nobody else has any, give exclusive: true',
  },
  event_types_not_offered: {
    test: () => subscribing(listing(), { eventTypes: ['impairment'] }),
    message: 'the seller has no impairment of an account',
  },
  account_unknown: {
    test: () => subscribing(async () => ({ accounts: [] })),
    message: 'the seller has no account with these members',
  },
  set_full: {
    test: () =>
      subscribing(listing(...Array.from({ length: 16 }, (_, at) => ({ subscriber_id: `theirs-${at}` })))),
    message: 'the seller keeps 16 subscriptions of an account or an agent, and these would be 17',
  },
  secret_missing: {
    test: async () => {
      const process = registering();
      await process(OTHER).create({ ...REQUEST, scheme: 'Bearer' });
      const { firstDamaged } = await process(SECRET).rewrap();
      return firstDamaged[0]?.error;
    },
    message: 'Add it at the end of secrets',
  },
  sealed_text_invalid: {
    test: async () => {
      const state = createMemoryState();
      const store = memoryStore({ state });
      const registrations = createRegistrations({
        store,
        baseUrl: 'https://buyer.example/webhooks',
        secrets: [SECRET, OTHER],
      });
      await createRegistrations({
        store,
        baseUrl: 'https://buyer.example/webhooks',
        secrets: [OTHER],
      }).create(REQUEST);
      await store.registrations?.run(REQUEST.agentUrl, (rows) => {
        for (const [id, row] of state.senders.get(REQUEST.agentUrl)?.registrations.operation.rows ?? []) {
          rows.save({ ...row, id, value: row.value.replace(/("sealed":".{30}).{4}/, '$1AAAA') });
        }
      });
      const { firstDamaged } = await registrations.rewrap();
      return firstDamaged[0]?.error;
    },
    message: 'cannot be decrypted',
  },
};
