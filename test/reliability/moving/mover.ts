import { existsSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Store } from '../../../src/index.ts';
import { createPoller, type Poller, type Receiver } from '../../../src/poll/index.ts';
import type {
  CallSeller,
  MovePlan,
  MoveRequest,
  Registrations,
  RouteScheme,
} from '../../../src/registrations/index.ts';
import type { StoreRegistrations } from '../../../src/stores/index.ts';
import { clientOf } from '../market/buyer.ts';
import { storeWith } from '../processes/breaks.ts';
import { world } from '../processes/clock.ts';
import type { Write } from '../processes/ledger.ts';
import type { Moves } from '../processes/wire.ts';
import { breakOf } from './broken.ts';
import { begunIn, isDeath, type Point, pointsSeen } from './points.ts';

/** What a process is told at `/moves/buy`. */
export interface BuyOrder {
  readonly name: string;
  readonly agentUrl: string;
  readonly scheme?: RouteScheme;
}

/** Moves what sellers were told, and dies at every point of that. */
export interface Mover {
  readonly watched: <T extends Store>(store: T) => T;
  readonly call: CallSeller;
  readonly poller: (receiver: Receiver, registrations: Registrations) => Poller;
  readonly serve: (
    registrations: Registrations,
    request: IncomingMessage,
    response: ServerResponse,
  ) => Promise<void>;
  /** By mistake. */
  readonly isForgotten: (host: string | undefined) => boolean;
}

/** Longer than any call: it is the registrations' own deadline that ends one. */
const CLIENT_MS = 10_000;
/** Until a process dies in a call, ms. Nothing that is asserted depends on it. */
const IN_CALL_MS = 15;
const POLLS = { fastMs: 300, slowMs: 300, callMs: 2_000, perSeller: 8 } as const;

export interface MoverOptions {
  readonly moves: Moves;
  readonly folder: string;
  readonly write: Write;
  /** Kills this process, and writes down where. */
  readonly die: (point: string) => void;
}

export function moverOf({ moves, folder, write, die }: MoverOptions): Mover {
  const { pid } = process;
  const { deaths = 0, points, bases = [] } = world ?? {};
  const reach = (point: Point): void => {
    if (points && !points.includes(point)) return;
    if (isDeath({ folder, point, deaths })) die(point);
  };
  const broken = breakOf(moves.breaks, folder);
  // The sellers note who asks.
  const client = clientOf(CLIENT_MS, `${pid}`);
  let own: Registrations | undefined;

  const dieInCall = async (): Promise<void> => {
    await sleep(IN_CALL_MS);
    reach('in call');
  };
  const made: CallSeller = async (...args) => {
    const [, operation] = args;
    const isUpdate = operation === 'update_media_buy';
    if (isUpdate) void dieInCall();
    const answer = await client(...args);
    if (isUpdate) reach('answered');
    if (operation === 'get_media_buys') reach('revision read');
    return answer;
  };
  const call = broken.call(made, () => own);

  const noteBegun = (key: string): void => write({ what: 'begin', key, pid });
  const seen = (registrations: StoreRegistrations): StoreRegistrations => ({
    run: async (sender, plan) => {
      const noted = new Set<Point>();
      const result = await registrations.run(sender, (rows, now) => {
        noted.clear();
        const pointed = pointsSeen(rows, (point) => noted.add(point));
        return plan(begunIn(pointed, noteBegun), now);
      });
      for (const point of noted) reach(point);
      return result;
    },
    due: (request) => registrations.due(request),
    page: (query) => registrations.page(query),
  });

  async function buy(registrations: Registrations, { name, agentUrl, scheme }: BuyOrder): Promise<void> {
    const seller = { agentUrl, edition: '3.1' } as const;
    const by = scheme === undefined ? {} : { scheme };
    const registration = await registrations.create({
      ...seller,
      ...by,
      taskType: 'create_media_buy',
      arguments: {
        buyer_ref: name,
        packages: [],
        reporting_webhook: await registrations.reportingWebhook(seller, { frequency: 'daily', ...by }),
      },
    });
    await registration.call();
  }

  /** All pages. */
  async function apply(registrations: Registrations, request: MoveRequest): Promise<number> {
    let steps = 0;
    let plan: MovePlan | undefined;
    do {
      plan = await registrations.plan({ ...request, ...(plan?.next !== undefined && { after: plan.next }) });
      await registrations.apply(plan);
      steps += plan.steps.length;
    } while (plan.next !== undefined);
    return steps;
  }

  return {
    watched: (store) => {
      if (!store.registrations) throw new TypeError('the store keeps no registrations');
      return storeWith(store, {
        registrations: seen(broken.registrations(store.registrations)),
        accept: async (request) => {
          const result = await store.accept(request);
          reach('admitted');
          return result;
        },
      });
    },
    call: Object.assign(call, { transport: () => 'tool' as const }),
    poller: (receiver, registrations) => {
      own = registrations;
      return createPoller({ receiver, registrations, ...POLLS });
    },
    serve: async (registrations, request, response) => {
      try {
        const body = (await json(request)) as BuyOrder & MoveRequest;
        const said = await (request.url === '/moves/buy' ? buy : apply)(registrations, body);
        response.writeHead(200).end(JSON.stringify(said ?? null));
      } catch (error) {
        response.writeHead(503).end(String(error));
      }
    },
    isForgotten: (host) =>
      moves.breaks === 'forgets-at-ack' &&
      host !== undefined &&
      host !== new URL(bases[0] ?? '').host &&
      existsSync(join(folder, 'acknowledged')),
  };
}
