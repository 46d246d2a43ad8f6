import { createHmac, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { post } from '../../market/seller/hooks.ts';
import { type SellerKey, signedHeaders } from '../../market/seller/keys.ts';
import type { Channel, MovingAgent } from '../wire.ts';
import type { Buy, Config, Log } from './book.ts';

/** Sends what media buys have to tell, each event again and again until its answer is final. */
export interface Events {
  /** Events of a media buy begin, until `finish`. */
  readonly begin: (buy: Buy) => void;
  readonly tell: (buy: Buy, to: Config, task: { readonly taskId: string; readonly status: string }) => void;
  /** Nothing is sent until `go`. Resolves when nobody waits for an answer. */
  readonly hold: () => Promise<void>;
  /** No event begins until `go`. Resolves when all are over. */
  readonly drain: () => Promise<void>;
  readonly go: () => void;
  /** The last events, by the URLs that count. Resolves when all are over. */
  readonly finish: () => Promise<void>;
  /** One more of each media buy by its former URLs, sent once. */
  readonly last: () => Promise<void>;
}

export interface EventsOptions {
  readonly log: Log;
  readonly everyMs: number;
  readonly keyOf: (agent: string) => SellerKey;
  readonly agents: readonly MovingAgent[];
}

type Auth = NonNullable<Config['authentication']>;

const DAY = 86_400_000;
const AGAIN_MS = [20, 60, 150, 300, 1000] as const;
/** POSTs at once: a buyer that is slow is not asked faster for it. */
const AT_ONCE = 12;
const CHANNELS: readonly Channel[] = ['reports', 'push'];

/** A report of one day, each of another one. */
function reportOf({ buy }: Buy, key: string, count: number): object {
  const end = new Date((Math.floor(Date.now() / DAY) - 2900 + (count % 2900)) * DAY);
  const delivery = {
    media_buy_id: buy,
    status: 'active',
    totals: { impressions: 1, spend: 1 },
    by_package: [],
  };
  return {
    idempotency_key: key,
    task_id: buy,
    task_type: 'media_buy_delivery',
    status: 'completed',
    timestamp: new Date(Date.now()).toISOString(),
    result: {
      notification_type: 'scheduled',
      sequence_number: count,
      reporting_period: { start: new Date(end.getTime() - DAY).toISOString(), end: end.toISOString() },
      currency: 'USD',
      media_buy_deliveries: [delivery],
    },
  };
}

const impairmentOf = ({ buy }: Buy, key: string): object => ({
  idempotency_key: key,
  notification_type: 'impairment',
  notification_id: `n-${key}`,
  fired_at: new Date(Date.now()).toISOString(),
  media_buy_id: buy,
  impairment_id: `i-${key}`,
});

export function eventsOf({ log, everyMs, keyOf, agents }: EventsOptions): Events {
  const now = { isHeld: false, isDrained: false, wasDrained: false, sending: 0, underWay: 0 };
  let isOver = false;
  let count = 0;
  const keepsOf = new Map(agents.map((agent) => [agent.name, agent.keeps]));
  const begun: Buy[] = [];
  const loops: Promise<void>[] = [];
  const seen = new Set<string>();

  const free = async (): Promise<void> => {
    while (now.isHeld || now.sending >= AT_ONCE) await sleep(5);
  };

  /** By agent and the URL that was first of all: what it was told first and last of what took its place. */
  const credentials = new Map<string, { readonly first: Auth; last: Auth }>();
  const placeOf = ({ agent, first }: Buy, channel: Channel): string => `${agent} ${first[channel]}`;
  const learn = (buy: Buy): void => {
    for (const channel of CHANNELS) {
      const { authentication } = buy.has[channel] ?? {};
      if (!authentication || seen.has(authentication.credentials)) continue;
      seen.add(authentication.credentials);
      const known = credentials.get(placeOf(buy, channel));
      if (known) known.last = authentication;
      else credentials.set(placeOf(buy, channel), { first: authentication, last: authentication });
    }
  };
  /** What the agent authenticates with there. Those that keep one for all do so for less than a day. */
  const authOf = (buy: Buy, channel: Channel, { authentication }: Config): Auth | undefined => {
    const keeps = isOver || now.wasDrained ? undefined : keepsOf.get(buy.agent);
    if (!authentication || keeps === undefined) return authentication;
    const known = credentials.get(placeOf(buy, channel));
    return (keeps === 'first' ? known?.first : known?.last) ?? authentication;
  };

  function headersOf(buy: Buy, channel: Channel, config: Config, body: Buffer): Record<string, string> {
    const authentication = authOf(buy, channel, config);
    const json = { 'Content-Type': 'application/json' };
    if (!authentication) return signedHeaders(config.url, body, keyOf(buy.agent));
    const { schemes, credentials: secret } = authentication;
    if (schemes.includes('Bearer')) return { ...json, Authorization: `Bearer ${secret}` };
    const time = String(Math.floor(Date.now() / 1000));
    const mac = createHmac('sha256', secret).update(`${time}.`).update(body).digest('hex');
    return { ...json, 'X-Proto-Timestamp': time, 'X-Proto-Signature': `sha256=${mac}` };
  }

  interface Event {
    readonly key: string;
    readonly channel: Channel;
    readonly body: object;
    /** At once. */
    readonly copies: number;
    readonly task?: string;
    readonly isLast?: boolean;
  }

  async function attempt(
    buy: Buy,
    config: Config,
    { key, channel }: Event,
    body: Buffer,
  ): Promise<number | undefined> {
    await free();
    now.sending += 1;
    try {
      const { url } = config;
      const answered = await post(url, body, headersOf(buy, channel, config, body));
      const of = { agent: buy.agent, buy: buy.buy, key, url };
      log.write({ what: 'post', ...of, ...(answered !== undefined && { answered }) });
      return answered;
    } finally {
      now.sending -= 1;
    }
  }

  async function deliver(buy: Buy, config: Config, event: Event): Promise<void> {
    now.underWay += 1;
    const { key, body, copies, task, isLast } = event;
    const of = { agent: buy.agent, buy: buy.buy, key, url: config.url };
    log.write({ what: 'event', ...of, ...(task !== undefined && { task }), ...(isLast && { isLast }) });
    const bytes = Buffer.from(JSON.stringify(body));
    const untilFinal = async (): Promise<void> => {
      for (let count = 0; ; count += 1) {
        const answered = await attempt(buy, config, event, bytes);
        const isFinal = answered !== undefined && answered < 500 && answered !== 429;
        if (isFinal || isLast) return;
        await sleep(AGAIN_MS[Math.min(count, AGAIN_MS.length - 1)]);
      }
    };
    await Promise.all(Array.from({ length: copies }, untilFinal));
    now.underWay -= 1;
  }

  const eventOf = (buy: Buy, channel: Channel): Event => {
    count += 1;
    const key = `${buy.buy}-${channel}-${count}-${randomUUID().slice(0, 8)}`;
    const body = channel === 'reports' ? reportOf(buy, key, count) : impairmentOf(buy, key);
    return { key, channel, body, copies: count % 5 === 0 ? 2 : 1 };
  };
  async function send(buy: Buy, channel: Channel): Promise<void> {
    learn(buy);
    const former = buy.had[channel];
    const isLagging = buy.lags[channel] > 0 && former !== undefined;
    if (isLagging) buy.lags[channel] -= 1;
    const config = isLagging ? former : buy.has[channel];
    if (config) await deliver(buy, config, eventOf(buy, channel));
  }
  async function loop(buy: Buy): Promise<void> {
    for (let at = 0; ; at += 1) {
      await sleep(Math.random() * everyMs);
      while (now.isHeld || now.isDrained) await sleep(5);
      if (isOver) return;
      await send(buy, CHANNELS[at % 2] ?? 'push');
    }
  }

  /** So many at a time. */
  const eachBuy = async (does: (buy: Buy) => Promise<void>): Promise<void> => {
    const waiting = begun.values();
    const turn = async (): Promise<void> => {
      for (const buy of waiting) await does(buy);
    };
    await Promise.all(Array.from({ length: 8 }, turn));
  };

  return {
    begin: (buy) => {
      begun.push(buy);
      learn(buy);
      loops.push(loop(buy));
    },
    tell: (buy, to, { taskId, status }) => {
      const key = `end-of-${taskId}`;
      const body = {
        idempotency_key: key,
        task_id: taskId,
        operation_id: to.operation_id,
        task_type: 'update_media_buy',
        domain: 'media-buy',
        status,
        timestamp: new Date(Date.now()).toISOString(),
        message: status,
        result:
          status === 'completed'
            ? { media_buy_id: buy.buy, revision: buy.revision, packages: [] }
            : { errors: [{ code: 'BUDGET_EXHAUSTED', message: 'nobody pays' }] },
      };
      void deliver(buy, to, { key, channel: 'push', body, copies: 1, task: taskId });
    },
    hold: async () => {
      now.isHeld = true;
      while (now.sending > 0) await sleep(5);
    },
    drain: async () => {
      now.isDrained = true;
      now.wasDrained = true;
      while (now.underWay > 0) await sleep(5);
    },
    go: () => {
      now.isDrained = false;
      now.isHeld = false;
    },
    finish: async () => {
      isOver = true;
      await Promise.all(loops);
      await eachBuy(async (buy) => {
        for (const channel of CHANNELS) {
          while (buy.lags[channel] > 0 && buy.had[channel]) await send(buy, channel);
          await send(buy, channel);
        }
      });
      while (now.underWay > 0) await sleep(5);
    },
    last: async () => {
      await eachBuy(async (buy) => {
        for (const channel of CHANNELS) {
          const former = buy.had[channel];
          if (former) await deliver(buy, former, { ...eventOf(buy, channel), isLast: true });
        }
      });
    },
  };
}
