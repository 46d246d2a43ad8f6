import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { webhookHandler } from '../../../src/adapters/node.ts';
import { createHashes } from '../../../src/crypto/for-tests.ts';
import { createReceiver, type Store } from '../../../src/index.ts';
import { registrationsOf } from '../../../src/registrations/for-tests.ts';
import type { CallSeller, Registrations } from '../../../src/registrations/index.ts';
import { openStore } from '../../reliability/processes/stores.ts';
import { SILENT_LOGGER } from '../../support/silent-logger.ts';
import type { AlarmSeen, Asked, Buying, Handled } from './wire.ts';

/*
 * A process of the buyer: registrations, and a receiver behind a real HTTP server, on a store that others share. It can die before
 * and after each step of the store and each call of a seller.
 */

/** What ends it. In a process of its own nothing comes back from it. */
export type Die = (where: string) => Promise<never>;

export interface Buyer {
  readonly port: number;
  readonly done: (asked: Asked) => Promise<unknown>;
  /** Takes no more connections, and ends those that there are. */
  readonly hangUp: () => void;
  /** As an operator would have it. */
  readonly end: () => Promise<void>;
  /** Its handles, where it is dead. */
  readonly bury: () => Promise<void>;
}

/** The longest wait between two looks at anything: the clock is moved by the test. Ms. */
const LOOK_MS = 5;
/** What waits for longer is the end of a call's time: that passes as it does. Ms. */
const LONGEST_LOOK_MS = 10_000;

/** Steps that are counted once it is armed. */
function lifeWith(die: Die): {
  readonly arm: (diesAt: number) => void;
  readonly passed: () => readonly string[];
  readonly around: <T>(name: string, step: () => Promise<T>) => Promise<T>;
} {
  let diesAt = Infinity;
  let isArmed = false;
  let isOver = false;
  let passed: string[] = [];
  const never = (): Promise<never> => new Promise(() => undefined);
  const point = async (name: string): Promise<void> => {
    if (isOver) return never();
    if (!isArmed) return;
    passed.push(name);
    if (passed.length <= diesAt) return;
    isOver = true;
    await die(name);
  };
  return {
    arm: (at) => {
      diesAt = at;
      isArmed = true;
      passed = [];
    },
    passed: () => passed,
    around: async (name, step) => {
      await point(`before ${name}`);
      try {
        const value = await step();
        await point(`after ${name}`);
        return value;
      } catch (error) {
        if (isOver) return never();
        await point(`after ${name}, which failed`);
        throw error;
      }
    },
  };
}

function mortal<S extends Store>(store: S, around: ReturnType<typeof lifeWith>['around']): S {
  const { registrations } = store;
  if (!registrations) throw new TypeError('the store keeps no registrations');
  return {
    ...store,
    registrations: {
      run: (sender, plan) =>
        around(`run of ${sender === '' ? 'nobody' : 'the seller'}`, () => registrations.run(sender, plan)),
      due: (request) => registrations.due(request),
      page: (query) => around('page', () => registrations.page(query)),
    },
  };
}

/** @param breaks a mistake that the proof has to find. */
export async function buyerOf(
  { place, baseUrl, callMs, offsetMs: offsetAtFirst }: Buying,
  client: CallSeller,
  die: Die,
  breaks: (registrations: Registrations) => Registrations = (one) => one,
): Promise<Buyer> {
  let offsetMs = offsetAtFirst;
  const life = lifeWith(die);
  const { store: whole, end: endStore } = openStore(place, undefined, { clockOffsetMs: () => offsetMs });
  const store = mortal(whole, life.around);
  const alarms: AlarmSeen[] = [];
  const handled: Handled[] = [];
  const call: CallSeller = Object.assign(
    ((agentUrl, operation, args, how) =>
      life.around(`${operation}${args['dry_run'] === true ? ', dry' : ''}`, () =>
        client(agentUrl, operation, args, how),
      )) satisfies CallSeller,
    client.operations && { operations: client.operations },
  );
  const registrations = breaks(
    registrationsOf(
      {
        store,
        call,
        baseUrl,
        secrets: ['of-every-process-of-this-one-run-of-tests'],
        allowLoopback: true,
        callMs,
        logger: SILENT_LOGGER,
        onAlarm: ({ code, message }) => void alarms.push({ code, message }),
      },
      {
        hashes: createHashes(),
        randomBytes: (count) => globalThis.crypto.getRandomValues(new Uint8Array(count)),
        newId: () => globalThis.crypto.randomUUID(),
        now: () => performance.now(),
        sleep: (ms, signal) =>
          wait(ms > LONGEST_LOOK_MS ? ms : Math.min(ms, LOOK_MS), undefined, { signal }).catch(
            () => undefined,
          ),
      },
    ),
  );
  const receiver = createReceiver({
    store,
    registrations,
    allowLoopback: true,
    durability: { require: 'process' },
    logger: SILENT_LOGGER,
    handlers: {
      other: async ({ idempotencyKey: key, ...event }) => {
        const { subscription } = event as Pick<Handled, 'subscription'>;
        handled.push({ key, ...(subscription && { subscription }) });
      },
    },
  });
  await receiver.ready();
  const server = createServer(webhookHandler(receiver));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const hangUp = (): void => {
    server.close();
    server.closeAllConnections();
  };
  const bury = async (): Promise<void> => {
    await whole.close();
    await endStore();
  };
  return {
    port: (server.address() as AddressInfo).port,
    hangUp,
    done: async (asked) => {
      switch (asked.what) {
        case 'subscribe':
        case 'unsubscribe':
          return registrations[asked.what](asked.wish as never);
        case 'list':
          return (await registrations.subscriptions.list({ agentUrl: asked.agentUrl })).subscriptions;
        case 'forget':
          return registrations.forget(asked.agentUrl);
        case 'arm':
          return life.arm(asked.diesAt);
        case 'start':
          return registrations.start();
        case 'stop':
          return registrations.stop();
        case 'clock':
          offsetMs = asked.offsetMs;
          return undefined;
        case 'passed':
          return life.passed();
        case 'alarms':
          return alarms.splice(0);
        case 'handled':
          return handled.splice(0);
      }
    },
    end: async () => {
      hangUp();
      await registrations.stop();
      await receiver.stop();
      await bury();
    },
    bury,
  };
}
