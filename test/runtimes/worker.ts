import * as core from 'proto-webhooks';
import * as events from 'proto-webhooks/events';
import * as fetchDoor from 'proto-webhooks/fetch';
import * as memory from 'proto-webhooks/memory';
import * as registry from 'proto-webhooks/registry';
import * as rfc9421 from 'proto-webhooks/rfc9421';
import * as sender from 'proto-webhooks/sender';
import type { Jwk, Store } from '../../src/index.ts';
import type { Library, Surroundings } from './kit.ts';
import { run } from './suite.ts';

/** What the runner hands to a worker. */
export interface WorkerOrder {
  readonly engines: Surroundings['engines'];
  readonly redirecting: string;
  readonly seller: NonNullable<Surroundings['seller']>;
  readonly publicUrl: string;
  /** Of a second seller. */
  readonly pin: Jwk;
}

/** Put in when the worker is bundled. */
declare const ORDER: WorkerOrder;

const lib: Library = { core, events, fetch: fetchDoor, memory, registry, rfc9421, sender };

let arrived = 0;
const state = { opened: false };

/** Opens when `/open` was asked for: until then requests find the start of another one under way. */
function closedStore(): Store {
  const open = async (): Promise<void> => {
    while (!state.opened) {
      await new Promise((resolve) => {
        setTimeout(resolve, 20);
      });
    }
  };
  return { ...memory.memoryStore(), open };
}

// At the top level, as users write it.
const door = fetchDoor.webhookHandler(
  core.createReceiver({
    publicUrl: ORDER.publicUrl,
    senders: [
      { agentUrl: ORDER.seller.agentUrl },
      { agentUrl: 'https://pinned.example/mcp', pins: [ORDER.pin] },
    ],
    store: closedStore(),
    durability: { require: 'process' },
    allowLoopback: true,
    handlers: { other: () => {} },
  }),
);

// oxlint-disable-next-line import/no-default-export -- what a worker is
export default {
  async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === '/suite') return Response.json(await run(lib, ORDER));
    if (pathname === '/arrived') return Response.json(arrived);
    if (pathname === '/open') return Response.json((state.opened = true));
    arrived += 1;
    return await door(request);
  },
};
