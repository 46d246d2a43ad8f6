import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CallSeller, Registrations } from '../../../src/registrations/index.ts';
import { launch } from '../../reliability/processes/child.ts';
import { type Buyer, buyerOf } from './buyer.ts';
import type { Answer, Asked, Buying, Told } from './wire.ts';

/** A process of the buyer, as a test sees it. */
export interface BuyerProcess {
  readonly port: number;
  /** Rejects with `GoneError` where the process dies before it has answered. */
  readonly ask: <T = unknown>(asked: Asked) => Promise<T>;
  readonly isGone: () => boolean;
  readonly end: () => Promise<void>;
}

export class GoneError extends Error {
  override readonly name = 'GoneError';
}

/** An error of a process, as it was told. */
export class ToldError extends Error {
  readonly code: string | undefined;

  constructor({ name, code, message }: NonNullable<Answer['error']>) {
    super(`${name}: ${message}`);
    this.code = code;
  }
}

export type StartBuyer = (buying: Buying) => Promise<BuyerProcess>;

const FILE = fileURLToPath(new URL('fixtures/process.ts', import.meta.url));

/** Processes of their own, which end by SIGKILL. @param shared `inject('shared')`: what they have compiled is kept there. */
export function apart(shared: string): StartBuyer {
  return async (buying) => {
    const { process: child, ready, gone } = launch<Told>('a buyer', FILE, buying, join(shared, 'compiled'));
    const first = await ready;
    if (first.kind !== 'ready') throw new Error('it has not said that it is ready');
    const asked = new Map<number, (answer: Answer | 'gone') => void>();
    let isGone = false;
    let count = 0;
    child.on('message', (told: Told) => {
      if (told.kind === 'done') asked.get(told.id)?.(told);
    });
    const over = async (): Promise<void> => {
      await gone;
      isGone = true;
      for (const tell of asked.values()) tell('gone');
    };
    const ended = over();
    return {
      port: first.port,
      isGone: () => isGone,
      ask: <T>(question: Asked) =>
        new Promise<T>((resolve, reject) => {
          if (isGone) return reject(new GoneError('the process is gone'));
          count += 1;
          const id = count;
          asked.set(id, (answer) => {
            asked.delete(id);
            if (answer === 'gone') reject(new GoneError('the process is gone'));
            else if (answer.error) reject(new ToldError(answer.error));
            else resolve(answer.value as T);
          });
          child.send({ kind: 'asked', id, asked: question } satisfies Told);
        }),
      end: async () => {
        child.kill('SIGKILL');
        await ended;
      },
    };
  };
}

/** The same within this process, on handles of their own: a dead one never goes on with anything. */
export function within(
  client: CallSeller,
  breaks?: (registrations: Registrations, client: CallSeller) => Registrations,
): StartBuyer {
  return async (buying) => {
    let isGone = false;
    let tellDeath = (): void => undefined;
    const death = new Promise<void>((resolve) => {
      tellDeath = resolve;
    });
    const never = new Promise<never>(() => undefined);
    const buyer: Buyer = await buyerOf(
      buying,
      client,
      () => {
        isGone = true;
        buyer.hangUp();
        tellDeath();
        return never;
      },
      breaks && ((registrations) => breaks(registrations, client)),
    );
    const dead = async (): Promise<never> => {
      await death;
      throw new GoneError('the process is gone');
    };
    return {
      port: buyer.port,
      isGone: () => isGone,
      ask: async <T>(question: Asked) => (await Promise.race([buyer.done(question), dead()])) as T,
      end: async () => {
        await (isGone ? buyer.bury() : buyer.end());
      },
    };
  };
}
