import { describe, expect, inject, it } from 'vitest';
import type { CallSeller, JsonObject, Registrations } from '../../src/registrations/index.ts';
import { within } from './buyer/processes.ts';
import type { Wish } from './buyer/wire.ts';
import type { Entry } from './seller/entries.ts';
import { accountOf, OTHERS } from './seller/others.ts';
import type { SubscriptionSeller } from './seller/seller.ts';
import { faultsIn, inWorld, settled, type World } from './world.ts';

/* Buyers with a mistake: the proof has to find each. The same scene with the library as it is has to find nothing. */

const SET = 'acc-1';
const NEW_OTHER: Entry = {
  subscriber_id: 'other.new',
  url: 'https://new.example/',
  event_types: ['signal.removed'],
  active: true,
};

type Client = (client: CallSeller) => CallSeller;
const asIs: Client = (client) => client;

const withCall = (
  client: CallSeller,
  call: (...given: Parameters<CallSeller>) => Promise<unknown>,
): CallSeller => Object.assign(call, client.operations && { operations: client.operations });

/** Does not read what others have. */
const sendsOnlyItsOwn: Client = (client) =>
  withCall(client, async (agentUrl, operation, args, how) => {
    const answer = await client(agentUrl, operation, args, how);
    if (operation !== 'list_accounts') return answer;
    return JSON.parse(
      JSON.stringify(answer, (_name, value: unknown) =>
        Array.isArray(value)
          ? value.filter((one) => !String((one as Entry | null)?.subscriber_id).startsWith('other'))
          : value,
      ),
    ) as unknown;
  });

/** Sends what was not answered once more, as it was. */
const repeatsItsArray: Client = (client) =>
  withCall(client, async (agentUrl, operation, args, how) => {
    try {
      return await client(agentUrl, operation, args, how);
    } catch (error) {
      if (operation !== 'sync_accounts') throw error;
      return client(agentUrl, operation, args, how);
    }
  });

/** Somebody on the way has credentials of their own put into what we register. */
const attacked: Client = (client) =>
  withCall(client, (agentUrl, operation, args, how) => {
    if (operation !== 'sync_accounts') return client(agentUrl, operation, args, how);
    const changed = JSON.parse(
      JSON.stringify(args, (_name, value: unknown) =>
        isOurs(value)
          ? { ...value, authentication: { schemes: ['HMAC-SHA256'], credentials: STOLEN } }
          : value,
      ),
    ) as JsonObject;
    return client(agentUrl, operation, changed, how);
  });

const STOLEN = 'credentials-of-somebody-on-the-way-0001';
const isOurs = (value: unknown): value is Entry =>
  (value as Partial<Entry> | null)?.url?.startsWith?.('http://127.0.0.1') === true;

/** Says yes to whatever it is asked. */
const saysYes = (registrations: Registrations): Registrations => ({
  ...registrations,
  answersChallenge: async () => true,
});

interface Scene {
  readonly client?: Client;
  readonly breaks?: (registrations: Registrations) => Registrations;
  readonly before?: (seller: SubscriptionSeller) => void;
  /** What others have in the end. */
  readonly others?: readonly Entry[];
}

/** Subscribes once, and gives what is wrong afterwards. */
const faults = (
  { client = asIs, breaks, before, others = OTHERS }: Scene,
  more: (world: World) => readonly string[] = () => [],
) =>
  inWorld(
    { kind: 'SQLite', shared: inject('shared'), startBy: ({ direct }) => within(client(direct), breaks) },
    async (world) => {
      const { seller } = world;
      seller.add(accountOf(SET));
      for (const entry of OTHERS) seller.put(SET, entry);
      before?.(seller);
      const process = await world.start();
      world.send(process);
      const wish: Wish = {
        agentUrl: seller.agentUrl,
        account: { account_id: SET },
        ref: 'r',
        eventTypes: ['product.updated'],
      };
      await process.ask({ what: 'start' });
      await process.ask({ what: 'subscribe', wish }).catch(() => undefined);
      const seen = await settled(world, process);
      const isActive = seen.length === 1 && seen[0]?.state === 'active';
      return [...(isActive ? [] : ['not active']), ...faultsIn(world, SET, others, seen), ...more(world)];
    },
  );

describe('the proof finds', () => {
  it('a buyer that sends only its own entries', async () => {
    expect(await faults({})).toEqual([]);
    expect(await faults({ client: sendsOnlyItsOwn })).toEqual([
      expect.stringContaining('others are not as they were'),
    ]);
  });

  it('a buyer that repeats its array after a call without an answer', async () => {
    const others = [...OTHERS, NEW_OTHER];
    const before = (seller: SubscriptionSeller): void =>
      seller.next(
        { operation: 'sync_accounts', isDry: false },
        { before: () => seller.put(SET, NEW_OTHER), isLost: true },
      );
    expect(await faults({ before, others })).toEqual([]);
    expect(await faults({ before, others, client: repeatsItsArray })).toEqual([
      expect.stringContaining('others are not as they were'),
    ]);
  });

  it('a buyer that answers every proof of control yes', async () => {
    const stolen = ({ seller }: World): readonly string[] =>
      seller
        .entries(SET)
        .flatMap(({ authentication }) => (authentication?.credentials === STOLEN ? ['stolen'] : []));
    expect(await faults({ client: attacked }, stolen)).toEqual(['not active']);
    expect(await faults({ client: attacked, breaks: saysYes }, stolen)).toContain('stolen');
  });
});
