import { join } from 'node:path';
import { createRegistrations, type Registrations } from '../../../src/registrations/index.ts';
import type { Fleet } from '../processes/fleet.ts';
import { type Ground, type GroundOptions, onGround } from '../processes/ground.ts';
import { openForJudge } from '../processes/stores.ts';
import type { Buys } from '../processes/wire.ts';
import { startFront } from './front.ts';
import { type SellerProcess, startSeller } from './seller-process.ts';
import type { AgentPolicy } from './wire.ts';
import { anyClient } from '../../support/any-client.ts';

export interface MarketOptions extends Omit<GroundOptions, 'buys'> {
  readonly buys: Omit<Buys, 'baseUrl'>;
  readonly agents: readonly AgentPolicy[];
}

export interface Market {
  readonly ground: Ground;
  readonly seller: SellerProcess;
  /** Who looks on: of no process of the buyer's. */
  readonly registrations: Registrations;
  readonly agents: readonly AgentPolicy[];
  /** Names of orders: a process said that their call was answered, and that its answer is kept. */
  readonly made: Set<string>;
}

/** Buyers whose webhooks come to any of them, and their seller; leaves nothing behind, however it ends. */
export async function onMarket<T>(
  { buys, agents, ...options }: MarketOptions,
  play: (market: Market) => Promise<T>,
): Promise<T> {
  let fleet: Fleet | undefined;
  const over = new AbortController();
  const front = await startFront(async () => {
    if (!fleet) throw new Error('no process serves yet');
    return (await fleet.door(over.signal)).port;
  });
  const baseUrl = `http://127.0.0.1:${front.port}/webhooks`;
  try {
    return await onGround({ ...options, buys: { ...buys, baseUrl } }, async (ground) => {
      fleet = ground.fleet;
      const seller = await startSeller({
        folder: join(ground.folder, 'seller'),
        seed: options.seed,
        agents,
        cache: join(options.shared, 'compiled'),
        signal: ground.signal,
      });
      const open = openForJudge(ground.backend.place);
      const registrations = createRegistrations({
        call: anyClient,
        store: open.store,
        baseUrl,
        secrets: ['of-every-process-of-this-one-run'],
        allowLoopback: true,
      });
      try {
        await open.store.open();
        return await play({ ground, seller, registrations, agents, made: new Set() });
      } finally {
        seller.destroy();
        await open.store.close();
        await open.end();
      }
    });
  } finally {
    over.abort();
    await front.close();
  }
}
