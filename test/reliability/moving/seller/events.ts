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
  /** Nothing is sent until `go`. Resolves when nothing is under way. */
  readonly hold: () => Promise<void>;
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

const DAY = 86_400_000;
const AGAIN_MS = 40;
const CHANNELS: readonly Channel[] = ['reports', 'push'];

/** A report of one day, each of another one. */
function reportOf({ buy }: Buy, key: string, count: number): object {
  const end = new Date((Math.floor(Date.now() / DAY) - 3000 + count) * DAY);
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
  const now = { isHeld: false, sending: 0, underWay: 0 };
  let isOver = false;
  let count = 0;
  const credentials = new Map<string, NonNullable<Config['authentication']>>();
  const keeps = new Map(agents.map((agent) => [agent.name, agent.keeps]));
  const begun: Buy[] = [];
  const loops: Promise<void>[] = [];
  const seen = new Set<string>();

  const free = async (): Promise<void> => {
    while (now.isHeld) await sleep(5);
  };

  /** What the agent authenticates with there. */
  const authOf = (agent: string, { authentication }: Config): Config['authentication'] => {
    const how = isOver ? undefined : keeps.get(agent);
    if (!authentication || how === undefined) return authentication;
    const name = `${agent} ${authentication.schemes.join(' ')}`;
    return how === 'first'
      ? (credentials.get(`first ${name}`) ?? authentication)
      : (credentials.get(name) ?? authentication);
  };
  /** What it was told is kept by scheme. */
  const learn = ({ agent, has }: Buy): void => {
    for (const { authentication } of Object.values(has)) {
      if (!authentication) continue;
      const name = `${agent} ${authentication.schemes.join(' ')}`;
      if (!credentials.has(`first ${name}`)) credentials.set(`first ${name}`, authentication);
      if (!seen.has(authentication.credentials)) credentials.set(name, authentication);
      seen.add(authentication.credentials);
    }
  };

  function headersOf(agent: string, config: Config, body: Buffer): Record<string, string> {
    const authentication = authOf(agent, config);
    const json = { 'Content-Type': 'application/json' };
    if (!authentication) return signedHeaders(config.url, body, keyOf(agent));
    const { schemes, credentials: secret } = authentication;
    if (schemes.includes('Bearer')) return { ...json, Authorization: `Bearer ${secret}` };
    const time = String(Math.floor(Date.now() / 1000));
    const mac = createHmac('sha256', secret).update(`${time}.`).update(body).digest('hex');
    return { ...json, 'X-Proto-Timestamp': time, 'X-Proto-Signature': `sha256=${mac}` };
  }

  async function attempt(
    { agent, buy }: Buy,
    config: Config,
    key: string,
    body: Buffer,
  ): Promise<number | undefined> {
    await free();
    now.sending += 1;
    try {
      const answered = await post(config.url, body, headersOf(agent, config, body));
      const { url } = config;
      log.write({ what: 'post', agent, buy, key, url, ...(answered !== undefined && { answered }) });
      return answered;
    } finally {
      now.sending -= 1;
    }
  }

  interface Event {
    readonly key: string;
    readonly body: object;
    readonly task?: string;
    readonly isLast?: boolean;
  }
  async function deliver(buy: Buy, config: Config, { key, body, ...how }: Event): Promise<void> {
    now.underWay += 1;
    log.write({ what: 'event', agent: buy.agent, buy: buy.buy, key, url: config.url, ...how });
    const bytes = Buffer.from(JSON.stringify(body));
    const untilFinal = async (): Promise<void> => {
      for (;;) {
        const answered = await attempt(buy, config, key, bytes);
        const isFinal = answered !== undefined && answered < 500 && answered !== 429;
        if (isFinal || how.isLast) return;
        await sleep(AGAIN_MS);
      }
    };
    // Every fifth is sent twice at once.
    await Promise.all(Array.from({ length: key.length % 5 === 0 ? 2 : 1 }, untilFinal));
    now.underWay -= 1;
  }

  const bodyOf = (buy: Buy, channel: Channel): Event => {
    count += 1;
    const key = `${buy.buy}-${channel}-${count}-${randomUUID().slice(0, 8)}`;
    return { key, body: channel === 'reports' ? reportOf(buy, key, count) : impairmentOf(buy, key) };
  };
  async function send(buy: Buy, channel: Channel): Promise<void> {
    learn(buy);
    const former = buy.had[channel];
    const isLagging = buy.lags[channel] > 0 && former !== undefined;
    if (isLagging) buy.lags[channel] -= 1;
    const config = isLagging ? former : buy.has[channel];
    if (config) await deliver(buy, config, bodyOf(buy, channel));
  }
  async function loop(buy: Buy): Promise<void> {
    for (let at = 0; ; at += 1) {
      await sleep(Math.random() * everyMs);
      await free();
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
      void deliver(buy, to, { key, body, task: taskId });
    },
    hold: async () => {
      now.isHeld = true;
      while (now.sending > 0) await sleep(5);
    },
    go: () => {
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
          if (former) await deliver(buy, former, { ...bodyOf(buy, channel), isLast: true });
        }
      });
    },
  };
}
