import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Observe } from '../../src/index.ts';
import {
  type Alarm,
  type CallSeller,
  type JsonObject,
  type Registrations,
  type SubscriptionSeen,
} from '../../src/registrations/index.ts';
import { LOOK_MS, registrationsOf } from '../../src/registrations/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import type { StoreRegistrations } from '../../src/stores/index.ts';
import { ciphers } from './ciphers.ts';
import { counted, hashes, NEWEST } from './kit.ts';

export const AGENT = 'https://seller.example/mcp';
export const CALL_MS = 60_000;
export const DAY_MS = 86_400_000;

export type Entry = Record<string, unknown>;

/** An account as the seller keeps it; credentials are with its entries. */
export interface Account {
  readonly account_id: string;
  readonly brand?: JsonObject;
  readonly operator?: string;
  notification_configs?: Entry[];
}

/** A call that the seller got. */
export interface Heard {
  readonly operation: string;
  readonly args: Record<string, unknown>;
}

const without = ({ authentication, ...entry }: Entry): Entry => {
  const { credentials: _secret, ...shown } = (authentication ?? {}) as Entry;
  return { ...entry, ...(authentication !== undefined && { authentication: shown }) };
};

/** A seller by the protocol, and ways to make it another one. */
export function subscriptionSeller(accounts: Account[] = [{ account_id: 'acc-1' }]) {
  const heard: Heard[] = [];
  const agent: { configs: Entry[] } = { configs: [] };
  const replayed = new Map<string, unknown>();
  const seller = {
    heard,
    accounts,
    agent,
    /** Comes first; what it returns or throws is the answer, unless it is undefined. */
    instead: undefined as ((call: Heard) => unknown) | undefined,
    /** Comes after the call was done. */
    after: undefined as ((call: Heard, answer: unknown) => unknown) | undefined,
    names: undefined as readonly string[] | undefined,
    capabilities: undefined as JsonObject | undefined,
    sent: (operation: string) =>
      heard.filter((call) => call.operation === operation && call.args['dry_run'] !== true),
  };
  const changed = (before: unknown, next: unknown): string =>
    JSON.stringify(before) === JSON.stringify(next) ? 'unchanged' : 'updated';
  const operations: Record<string, (args: Record<string, unknown>) => unknown> = {
    list_accounts: () => ({
      accounts: accounts.map(({ notification_configs: configs, ...account }) => ({
        ...account,
        ...(configs && { notification_configs: configs.map(without) }),
      })),
    }),
    sync_accounts: ({ accounts: given, dry_run: isDry }) => ({
      dry_run: isDry === true,
      accounts: (given as { account: JsonObject; notification_configs: Entry[] }[]).map((one) => {
        const account = accounts.find((is) => is.account_id === one.account['account_id']) ?? accounts[0];
        if (!account) return { action: 'failed', errors: [{ code: 'ACCOUNT_NOT_FOUND', message: 'none' }] };
        const action = changed(account.notification_configs, one.notification_configs);
        if (isDry !== true) account.notification_configs = structuredClone(one.notification_configs);
        return { account_id: account.account_id, action, status: 'active' };
      }),
    }),
    sync_agent_notification_configs: ({ notification_configs: given, dry_run: isDry }) => {
      const configs = given as Entry[];
      const action =
        configs.length === 0 && agent.configs.length > 0 ? 'cleared' : changed(agent.configs, configs);
      if (isDry !== true) agent.configs = structuredClone(configs);
      return { dry_run: isDry === true, action };
    },
    get_adcp_capabilities: () => seller.capabilities,
  };
  const call: CallSeller = async (_agentUrl, operation, args) => {
    const one: Heard = { operation, args: structuredClone(args) };
    heard.push(one);
    const other = await seller.instead?.(one);
    if (other !== undefined) return other;
    const key = JSON.stringify([operation, args['idempotency_key']]);
    const answer = replayed.get(key) ?? operations[operation]?.(structuredClone(args));
    if (args['idempotency_key'] !== undefined) replayed.set(key, answer);
    return (await seller.after?.(one, answer)) ?? answer;
  };
  const client: CallSeller = Object.assign(call, { operations: async () => seller.names });
  return Object.assign(seller, { client });
}

export type SubscriptionSeller = ReturnType<typeof subscriptionSeller>;

const unobserved: Observe = () => expect.fail('nothing is observed');

/** Processes on one store; time passes while one of them waits, and in no other way. */
export function subscriptionWorld(seller: SubscriptionSeller = subscriptionSeller()) {
  const state = createMemoryState();
  const randomBytes = counted();
  const alarms: Alarm[] = [];
  const lines: string[] = [];
  const world = {
    seller,
    alarms,
    lines,
    offsetMs: 0,
    process,
    /** As the store counts: real time passes too. */
    now: () => Date.now() + world.offsetMs,
  };
  let ids = 0;
  const logger = {
    debug() {},
    info() {},
    error() {},
    warn: (_fields: object, line: string) => void lines.push(line),
  };
  /** @param wrapped what becomes of the store's rows: a process that dies at one of their steps. */
  function process(
    client: CallSeller = seller.client,
    wrapped: (rows: StoreRegistrations) => StoreRegistrations = (rows) => rows,
    baseUrl: string | readonly string[] = 'https://buyer.example/webhooks',
  ): Registrations {
    const store = memoryStore({ state, clockOffsetMs: () => world.offsetMs });
    const { registrations: rows } = store;
    if (!rows) throw new Error('the store has registrations');
    const made = registrationsOf(
      {
        call: client,
        store: Object.assign(store, { registrations: wrapped(rows) }),
        baseUrl,
        secrets: [NEWEST],
        callMs: CALL_MS,
        logger,
        onAlarm: (alarm) => void alarms.push(alarm),
      },
      {
        hashes,
        randomBytes,
        newId: () => `id-${String((ids += 1)).padStart(20, '0')}`,
        now: () => world.offsetMs,
        sleep: async (ms, signal) => {
          do await turn();
          while (ciphers.running > 0);
          // The deadline of a call: it is over before.
          if (ms > LOOK_MS) return signal?.aborted ? undefined : new Promise(() => {});
          world.offsetMs += ms;
        },
      },
    );
    made.observeBy?.(unobserved, () => {});
    return made;
  }
  return world;
}

/** Runs the loops of a process until `until` says so, at most for so long. */
export async function runUntil(
  world: ReturnType<typeof subscriptionWorld>,
  process: Registrations,
  until: () => Promise<boolean> | boolean,
  mostMs = 2 * DAY_MS,
): Promise<void> {
  const end = world.offsetMs + mostMs;
  await process.start();
  while (world.offsetMs < end && !(await until())) await turn();
  await process.stop();
}

/* What tests of subscriptions have in common. */

export const account = { account_id: 'acc-1' };
export const TYPES = ['creative.status_changed', 'creative.purged'];
export const request = { agentUrl: AGENT, account, eventTypes: TYPES, ref: 'creatives' };
export const products = { agentUrl: AGENT, account, eventTypes: ['product.created'], ref: 'products' };
export const ofAgent = {
  agentUrl: AGENT,
  eventTypes: ['capabilities.changed'],
  ref: 'agent',
  exclusive: true,
};

/** Entries that others have, with members that nobody here knows. */
export const THEIRS: readonly Entry[] = [
  {
    subscriber_id: 'theirs-1',
    url: 'https://other.example/a',
    event_types: ['creative.purged'],
    x: { y: [1] },
  },
  {
    subscriber_id: 'theirs-2',
    url: 'https://other.example/b',
    event_types: ['x.y'],
    active: false,
    ext: null,
  },
];

export const withTheirs = (...more: readonly Entry[]): SubscriptionSeller =>
  subscriptionSeller([{ account_id: 'acc-1', notification_configs: structuredClone([...THEIRS, ...more]) }]);

export const configsOf = (seller: SubscriptionSeller): readonly Entry[] =>
  seller.accounts[0]?.notification_configs ?? [];
export const oursOf = (seller: SubscriptionSeller): readonly Entry[] =>
  configsOf(seller).filter(({ subscriber_id: id }) => !String(id).startsWith('theirs'));
export const theirsOf = (seller: SubscriptionSeller): readonly Entry[] =>
  configsOf(seller).filter(({ subscriber_id: id }) => String(id).startsWith('theirs'));

export const listed = async (registrations: Registrations): Promise<readonly SubscriptionSeen[]> =>
  (await registrations.subscriptions.list()).subscriptions;
export const statesOf = async (registrations: Registrations): Promise<readonly string[]> =>
  (await listed(registrations)).map(({ ref, state }) => `${ref} ${state}`);

export const told = (seller: SubscriptionSeller): readonly string[] =>
  seller.heard.map(({ operation, args }) => `${operation}${args['dry_run'] === true ? ' dry' : ''}`);

/** A day passes, and then some minutes in which a process looks. */
export async function aDayLater(
  world: ReturnType<typeof subscriptionWorld>,
  process: Registrations,
): Promise<void> {
  world.offsetMs += DAY_MS;
  await runUntil(world, process, () => false, 10 * CALL_MS);
}

export const CHANGE = ['list_accounts', 'sync_accounts dry', 'sync_accounts', 'list_accounts'];
export const refusedBy = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => expect.fail('it is refused'),
    (error: unknown) => error,
  );
