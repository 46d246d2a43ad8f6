import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Jwk, SignedDelivery } from '../../../src/sender/sign.ts';
import { signDelivery } from '../../../src/sender/sign.ts';
import type { Fleet } from './fleet.ts';
import { post, type PostAnswer } from './post.ts';
import type { Random } from './random.ts';

export const PUBLIC_URL = 'https://buyer.example/webhooks/proto';
export const AGENT_URL = 'https://seller.example/mcp';

/** What a seller was told, in numbers. */
export interface Tally {
  /** POSTs. */
  attempts: number;
  /** POSTs without an answer: their process died, or is stopped. */
  unanswered: number;
  /** Answers 503. */
  unavailable: number;
  /** Answers 401 `replayed` to bytes that had been sent before: the event is safe. */
  replayed: number;
}

/** A good seller: it comes again until it has a final answer. */
export interface Seller {
  readonly tally: Tally;
  /** Answers that no seller should get: anything but 2xx, 503, and `replayed` for bytes that were sent before. */
  readonly unexpected: readonly string[];
  /**
   * Delivers one event until its answer is final, and says whether it is that the event is safe.
   * @param again after no answer or 503: newly signed, or now these bytes again and now newly signed.
   */
  readonly deliver: (payload: object, again: 'fresh' | 'either') => Promise<boolean>;
  /** Delivers the same bytes so many times at once, each until its answer is final. */
  readonly deliverCopies: (payload: object, copies: number) => Promise<readonly boolean[]>;
  readonly close: () => void;
}

export interface SellerOptions {
  readonly fleet: Pick<Fleet, 'door'>;
  readonly privateJwk: Jwk;
  readonly random: Random;
  /** Until an attempt counts as unanswered, ms. */
  readonly timeoutMs: number;
  /** Ends it: deliveries under way reject. */
  readonly signal: AbortSignal;
}

/** The longest pause before it comes again, ms. Sellers wait longer; nothing that is asserted depends on it. */
const PAUSE_MS = 40;

/** The next bytes, after some that had no final answer. */
type Next = (last: SignedDelivery) => SignedDelivery | Promise<SignedDelivery>;

export function sellerOf(options: SellerOptions): Seller {
  const { fleet, privateJwk, random, timeoutMs, signal } = options;
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
  const tally: Tally = { attempts: 0, unanswered: 0, unavailable: 0, replayed: 0 };
  const unexpected: string[] = [];
  const sign = (body: object): Promise<SignedDelivery> =>
    signDelivery({ url: PUBLIC_URL, key: privateJwk, body });

  /** Whether the event is safe, where the answer is final. */
  function isSafe({ status, code }: PostAnswer, wasSent: boolean): boolean | undefined {
    tally.attempts += 1;
    if (status === undefined) tally.unanswered += 1;
    if (status === 503) tally.unavailable += 1;
    if (status === undefined || status === 503) return undefined;
    if (status >= 200 && status < 300) return true;
    const isReplay = code === 'webhook_signature_replayed' && wasSent;
    if (isReplay) tally.replayed += 1;
    else unexpected.push(`${status} ${code ?? ''}`);
    return isReplay;
  }

  async function untilFinal(first: SignedDelivery, isCopy: boolean, next: Next): Promise<boolean> {
    let wasSent = isCopy;
    for (let delivery = first; ;) {
      const { port } = await fleet.door(signal);
      const safe = isSafe(await post(delivery, { agent, port, timeoutMs, signal }), wasSent);
      if (safe !== undefined) return safe;
      signal.throwIfAborted();
      await sleep(1 + random.below(PAUSE_MS));
      const last = delivery;
      delivery = await next(last);
      wasSent = isCopy || delivery === last;
    }
  }

  return {
    tally,
    unexpected,
    deliver: async (payload, again) =>
      untilFinal(await sign(payload), false, (last) =>
        again === 'either' && random.below(2) === 0 ? last : sign(payload),
      ),
    async deliverCopies(payload, copies) {
      const delivery = await sign(payload);
      const one = (): Promise<boolean> => untilFinal(delivery, true, (last) => last);
      return Promise.all(Array.from({ length: copies }, one));
    },
    close: () => agent.destroy(),
  };
}
