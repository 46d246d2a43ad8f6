import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AcceptRequest, Store } from '../../../src/stores/contract.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import type { RedisUrl } from '../../support/redis.ts';
import { startRedis } from '../../support/redis.ts';
import { clientOf, newPrefix } from '../redis-harness.ts';
import { acceptRequest, leaseOf } from '../requests.ts';

/** An instant that nobody's clock has reached. Unix ms. */
const FAR = 9_000_000_000_000;

/**
 * All that is kept under ARGV[1], the key of a record, ARGV[2] its task, ARGV[3] its nonce, ARGV[4] its key id; instants
 * as ms from the record's insertion, lives in minutes, rounded.
 */
const KEPT = String.raw`
local base, key, out = KEYS[1], ARGV[1], {}
local row = { cmsgpack.unpack(redis.call('GET', base .. ':r:' .. key)) }
local since = row[10]
local function say(name, value)
  local number = tonumber(value)
  if number and number > 1000000000000 and number < ${FAR} then value = math.floor(number - since) end
  out[#out + 1] = name .. ' ' .. tostring(value)
end
local function life(name) say('life of ' .. name, math.floor(redis.call('PTTL', base .. name) / 60000 + 0.5)) end
local function packed(name, fields)
  local text = redis.call('GET', base .. name)
  if not text then return say(name, 'absent') end
  local values = { cmsgpack.unpack(text) }
  for i = 1, fields do say(name .. ' ' .. i, values[i]) end
  life(name)
end
packed(':r:' .. key, 26)
packed(':t:' .. ARGV[2], 4)
packed(':o:' .. #ARGV[4] .. ':' .. ARGV[4] .. ':' .. ARGV[3], 3)
say('body', redis.call('GET', base .. ':b:' .. key))
life(':b:' .. key)
for _, index in ipairs({ { ':x', 'r' .. key }, { ':x', 't' .. ARGV[2] }, { ':z:' .. ARGV[4], ARGV[3] }, { ':l', key }, { ':q', key },
  { ':d', key } }) do
  say(index[1] .. ' ' .. index[2], redis.call('ZSCORE', base .. index[1], index[2]))
end
say('bytes', redis.call('HGET', base .. ':s', 'of ' .. key))
say('all bytes', redis.call('HGET', base .. ':s', 'sum'))
say('entries', redis.call('ZCARD', base .. ':x'))
for _, name in ipairs({ ':x', ':s', ':l' }) do life(name) end
return out
`;

type Event = NonNullable<AcceptRequest['event']>;

function withEvent(request: AcceptRequest, change: Partial<Event>): AcceptRequest {
  if (!request.event) throw new Error('an event');
  return { ...request, event: { ...request.event, ...change } };
}

const withoutNonce = ({ nonce: _nonce, ...rest }: AcceptRequest): AcceptRequest => rest;

/** An accept of the event `name`, in the shapes that are ordinary. */
const SHAPES: Readonly<Record<string, (name: string) => AcceptRequest>> = {
  'with a task': (name) => acceptRequest({ key: name, task: `task-${name}` }),
  'with a terminal status': (name) =>
    withEvent(acceptRequest({ key: name }), {
      task: { id: `task-${name}`, instant: '1.', instantMs: 1000, terminal: true },
    }),
  'far ahead of the clock': (name) =>
    withEvent(acceptRequest({ key: name }), {
      task: { id: `task-${name}`, instant: '9.', instantMs: FAR, terminal: false },
    }),
  'of no task': (name) => acceptRequest({ key: name }),
  'without a nonce': (name) => withoutNonce(acceptRequest({ key: name, task: `task-${name}` })),
  'with a fingerprint of the canonical JSON': (name) =>
    withEvent(acceptRequest({ key: name }), { canonicalHash: 'c'.repeat(64), onChanged: 'conflict' }),
};

describe('an ordinary accept', () => {
  let server: RedisUrl;
  let redis: Redis;
  beforeAll(async () => {
    server = await startRedis();
    redis = clientOf.url(server.url);
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });

  async function kept(prefix: string, name: string, { nonce, event }: AcceptRequest): Promise<string[]> {
    const [of] = await redis.keys(`${prefix}*:r:${name}`);
    const base = of?.replace(`:r:${name}`, '') ?? '';
    const args = [name, event?.task?.id ?? 'none', nonce?.nonce ?? 'none', nonce?.keyid ?? 'none'];
    const said = (await redis.eval(KEPT, 1, base, ...args)) as string[];
    // Names and random ids apart, the two are to be one.
    const text = said
      .join('\n')
      .replaceAll(name, '<key>')
      .replaceAll(nonce?.nonce ?? '<nonce>', '<nonce>');
    return text.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '<id>').split('\n');
  }

  /** Whether the rules were asked: they look for what has expired first. */
  async function rulesAsked(run: () => Promise<unknown>): Promise<boolean> {
    await redis.call('CONFIG', 'RESETSTAT');
    await run();
    return (await redis.info('commandstats')).includes('cmdstat_zrangebyscore');
  }

  async function opened(prefix: string): Promise<Store> {
    const store = redisStore({ client: redis, prefix });
    await store.open();
    return store;
  }

  it.each(Object.keys(SHAPES))(
    '%s leaves the rows that the rules leave, and answers as they do',
    async (shape) => {
      const [make, prefix] = [SHAPES[shape] ?? acceptRequest, newPrefix()];
      const store = await opened(prefix);
      // The rules have the first of a sender, and what sets a new minute of the nonces' index.
      const [first, second] = [make('event-0001-of-the-seller'), make('event-0002-of-the-seller')];
      let byRules;
      expect(await rulesAsked(async () => (byRules = await store.accept(first)))).toBe(true);
      const left = await kept(prefix, 'event-0001-of-the-seller', first);
      await store.complete({ ...leaseOf(first), retentionMs: first.retentionMs });
      let ordinary;
      expect(await rulesAsked(async () => (ordinary = await store.accept(second)))).toBe(false);
      const ownLeft = await kept(prefix, 'event-0002-of-the-seller', second);
      const counted = (line: string): boolean => !line.startsWith('entries');
      expect(ownLeft.filter(counted)).toEqual(left.filter(counted));
      expect(Number(ownLeft.at(-4)?.split(' ')[1])).toBe(2 * Number(left.at(-4)?.split(' ')[1]));
      const expected = {
        ...(byRules as object | undefined),
        lease: { owner: second.acceptId, fence: 1, attempt: 1 },
      };
      expect(ordinary).toEqual(expected);
      await store.close();
    },
  );

  it('is what the rules are not asked for; what has been, is near a limit, or is of a known task is theirs', async () => {
    const store = await opened(newPrefix());
    const request = acceptRequest({ key: 'event-0001-of-the-seller', task: 'task-1' });
    await store.accept(request);
    const next = acceptRequest({ key: 'event-0002-of-the-seller', task: 'task-2' });
    expect(await rulesAsked(() => store.accept(next))).toBe(false);
    expect(await rulesAsked(() => store.accept(next))).toBe(true);
    const known = acceptRequest({ key: 'event-0003-of-the-seller', task: 'task-2' });
    expect(await rulesAsked(() => store.accept(known))).toBe(true);
    const near = acceptRequest({ key: 'event-0004-of-the-seller' });
    const limits = { ...near.limits, maxRecordsPerSender: 7 };
    expect(await rulesAsked(() => store.accept({ ...near, limits }))).toBe(true);
    await store.close();
  });
});
