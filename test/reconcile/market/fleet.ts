import { randomBytes, randomUUID } from 'node:crypto';
import { loadOnDemand } from '../../../src/for-tests.ts';
import type { Event } from '../../../src/events/index.ts';
import type { Alarm } from '../../../src/index.ts';
import type { Reconciler, ReconcilerOptions } from '../../../src/reconcile/index.ts';
import { reconcilerOf } from '../../../src/reconcile/for-tests.ts';
import type { CallSeller, Registrations } from '../../../src/registrations/index.ts';
import { registrationsOf } from '../../../src/registrations/for-tests.ts';
import type { KeyPair } from '../../../src/sender/sign.ts';
import type { Store } from '../../../src/stores/index.ts';
import { testReceiver, type TestReceiver } from '../../receiver/setup.ts';
import { hashes, NEWEST } from '../../registrations/kit.ts';
import type { Random } from '../../reliability/processes/random.ts';
import type { VirtualClock } from '../../support/virtual-clock.ts';
import { mortal, type Mortality } from '../crash/points.ts';

/*
 * The processes of a buyer, all in this one, under one virtual clock: receivers, workers and reconcilers on one store. Each can be
 * killed at any of its steps: none of its calls comes back then, and what it had in its memory is gone.
 */

/** A process of the buyer. */
export interface Buyer {
  readonly receiver: TestReceiver;
  readonly registrations: Registrations;
  readonly reconciler: Reconciler;
}

export interface BuyerOptions {
  readonly store: Store;
  readonly clock: VirtualClock;
  readonly call: CallSeller;
  readonly mode: 'inline' | 'inbox';
  /** The keys of the sellers, by their agent. */
  readonly keys: ReadonlyMap<string, KeyPair>;
  /** @throws Error where the handler fails. */
  readonly handle: (event: Event) => void | Promise<void>;
  readonly alarmed: (alarm: Alarm) => void;
  readonly reconcile: Partial<ReconcilerOptions>;
  /** The longest wait between two looks of the reconciler. */
  readonly lookMs: number;
  /** Default: it lives. */
  readonly life?: Mortality;
}

const never = (): Promise<never> => new Promise(() => {});

/** A process that is not started yet. */
export async function buyerOf(options: BuyerOptions): Promise<Buyer> {
  const { clock, call, keys, life = IMMORTAL } = options;
  const store = options.life ? mortal(options.store, life) : options.store;
  const sleep: VirtualClock['sleep'] = async (ms, signal) => {
    await clock.sleep(ms, signal);
    return life.isOver() ? never() : undefined;
  };
  const asking: CallSeller = async (...question) => {
    await life.point('before a question');
    const answer = await call(...question);
    await life.point('after a question');
    return answer;
  };
  const registrations = registrationsOf(
    {
      store,
      call: Object.assign(asking, call),
      baseUrl: 'https://buyer.example/webhooks',
      secrets: [NEWEST],
    },
    {
      hashes,
      randomBytes: (count) => new Uint8Array(randomBytes(count)),
      newId: () => randomUUID(),
      now: clock.now,
      sleep,
    },
  );
  const receiver = await testReceiver({
    store,
    registrations,
    mode: options.mode,
    senders: [...keys].map(([agentUrl, { publicJwk }]) => ({ agentUrl, pins: [publicJwk] })),
    retry: { baseMs: 1, maxMs: 1 },
    // A process that died may hold the event: its seller comes again, and no time of this machine is waited for.
    ...(options.life && { advanced: { waitMs: 5 } }),
    handlers: {
      other: async (event: Event) => {
        await life.point('before the effect');
        await options.handle(event);
        await life.point('after the effect');
      },
    },
    onAlarm: (alarm) => {
      if (!life.isOver()) options.alarmed(alarm);
    },
  });
  const reconciler = reconcilerOf(
    { receiver: receiver.receiver, registrations, ...options.reconcile },
    { sleep, lookMs: options.lookMs },
  );
  return { receiver, registrations, reconciler };
}

const IMMORTAL: Mortality = { point: async () => {}, isOver: () => false };

/** Begins to take deliveries, to work and to reconcile. */
export async function started({ receiver, reconciler }: Buyer): Promise<void> {
  await receiver.receiver.start();
  await loadOnDemand();
  await reconciler.start();
}

/** A life that others end: at one of the next points. */
interface DoomedLife extends Mortality {
  readonly doom: (points: number) => void;
  /** It is to end at a point that has not come yet, or it has ended. */
  readonly isDoomed: () => boolean;
  readonly died: Promise<void>;
}

/** @param ended is called once, when it ends. */
function doomedLife(ended: () => void): DoomedLife {
  let left = Infinity;
  let over = false;
  let tell = (): void => {};
  const died = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const end = (): void => {
    over = true;
    ended();
    tell();
  };
  return {
    died,
    isOver: () => over,
    isDoomed: () => left < Infinity,
    doom: (points) => {
      if (over) return;
      left = Math.min(left, points);
      if (left <= 0) end();
    },
    point: () => {
      if (over) return never();
      left -= 1;
      if (left > 0) return Promise.resolve();
      end();
      return never();
    },
  };
}

/** The processes that live now. */
export interface Fleet {
  /** Those that have died. */
  readonly deaths: () => number;
  /** One of them begins. */
  readonly begin: () => Promise<void>;
  /** One of them dies, at one of its next steps; one that is to die already is left alone. */
  readonly kill: () => void;
  /** All of them die, at once. */
  readonly killAll: () => void;
  /** Gives a task to one that lives; undefined: there is none, or it has died at it. */
  readonly ask: <T>(task: (buyer: Buyer) => Promise<T>) => Promise<T | undefined>;
  readonly end: () => Promise<void>;
}

export function fleetOf(options: () => Omit<BuyerOptions, 'life'>, random: Random): Fleet {
  let living: { readonly buyer: Buyer; readonly life: DoomedLife }[] = [];
  let deaths = 0;
  const alive = (): typeof living => (living = living.filter(({ life }) => !life.isOver()));
  return {
    deaths: () => deaths,
    begin: async () => {
      const life = doomedLife(() => {
        deaths += 1;
      });
      const buyer = await buyerOf({ ...options(), life });
      await started(buyer);
      living.push({ buyer, life });
    },
    kill: () => {
      const left = alive().filter(({ life }) => !life.isDoomed());
      if (left.length > 0) random.pick(left).life.doom(1 + random.below(30));
    },
    killAll: () => {
      for (const { life } of alive()) life.doom(0);
    },
    ask: async (task) => {
      if (alive().length === 0) return undefined;
      const { buyer, life } = random.pick(living);
      return Promise.race([task(buyer), life.died.then(() => undefined)]);
    },
    end: async () => {
      for (const { buyer } of alive()) {
        await buyer.reconciler.stop();
        await buyer.receiver.receiver.stop();
      }
    },
  };
}
