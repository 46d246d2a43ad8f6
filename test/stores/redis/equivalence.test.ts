import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Redis } from 'ioredis';
import { memoryStore } from '../../../src/stores/memory.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import type { RedisUrl } from '../../support/redis.ts';
import { startRedis } from '../../support/redis.ts';
import { clientOf, newPrefix } from '../redis-harness.ts';
import type { Call, Form } from '../calls.ts';
import { answerOf, call, capped, stepBefore, timeless } from '../calls.ts';

/** What the indexes say against the rows themselves: KEYS[1] the sender's base, ARGV all of its keys. */
const CHECK = String.raw`
local wrong, bytes, sum = {}, 0, tonumber(redis.call('HGET', KEYS[1] .. ':s', 'sum') or 0)
local function expect(what, a, b) if a ~= b then wrong[#wrong + 1] = what .. ': ' .. tostring(a) .. ' is not ' .. tostring(b) end end
local counted, lists = 0, { queued = ':q', leased = ':l', dead = ':k' }
for _, key in ipairs(ARGV) do
  local kind, id = key:sub(#KEYS[1] + 2, #KEYS[1] + 2), key:sub(#KEYS[1] + 4)
  if kind == 'b' then bytes = bytes + redis.call('STRLEN', key) end
  if kind == 'r' or kind == 't' or kind == 'n' or kind == 'f' then
    counted = counted + 1
    expect('counted ' .. id, redis.call('ZSCORE', KEYS[1] .. ':x', kind .. id) ~= false, true)
  end
  if kind == 'r' then
    local state = cmsgpack.unpack(redis.call('GET', key))
    for name, list in pairs(lists) do
      expect(id .. ' listed as ' .. name, redis.call('ZSCORE', KEYS[1] .. list, id) ~= false, state == name)
    end
    if not lists[state] then expect(id .. ' is due', redis.call('ZSCORE', KEYS[1] .. ':d', id), false) end
    expect('body of ' .. id, redis.call('EXISTS', KEYS[1] .. ':b:' .. id), lists[state] and 1 or 0)
  end
end
expect('bytes', sum, bytes)
expect('entries', redis.call('ZCARD', KEYS[1] .. ':x'), counted)
return wrong
`;

/** The sender's counts and indexes, by looking at every row. */
async function expectIndexesRight(redis: Redis, prefix: string): Promise<void> {
  const keys = (await redis.keys(`${prefix}*`)).filter((key) => !key.startsWith(`${prefix}{registry}`));
  const base = /^.*?\}/.exec(keys[0] ?? '')?.[0];
  if (base !== undefined) expect(await redis.eval(CHECK, 1, base, ...keys)).toEqual([]);
}

/** Accepts of few names, and of many: ordinary ones among others. */
const accepting: fc.Arbitrary<Call> = fc
  .tuple(call, fc.nat(40), fc.boolean())
  .map(([made, key, few]) => ({ ...made, does: 'accept', ...(!few && { accept: key, key, nonce: key }) }));

/** Completions of the same names, mostly by the accept that may have won. */
const completing: fc.Arbitrary<Call> = accepting.map((made) => ({ ...made, does: 'complete' }));

describe('memory and Redis', () => {
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

  /** A history on both, calls of a turn at once on Redis and one by one in memory. */
  async function expectSame(
    turns: readonly (readonly Call[])[],
    form: Form = (store) => store,
  ): Promise<void> {
    let offsetMs = 0;
    const clockOffsetMs = (): number => offsetMs;
    const prefix = newPrefix();
    const remote = redisStore({ client: redis, prefix, clockOffsetMs });
    const memory = memoryStore({ clockOffsetMs });
    await remote.open();
    try {
      for (const turn of turns) {
        offsetMs += Math.max(...turn.map(stepBefore));
        const expected: unknown[] = [];
        for (const made of turn) expected.push(await answerOf(form(memory), made));
        const given = await Promise.all(turn.map((made) => answerOf(form(remote), made)));
        expect(timeless(given)).toEqual(timeless(expected));
      }
      await expectIndexesRight(redis, prefix);
    } finally {
      await remote.close();
      const keys = await redis.keys(`${prefix}*`);
      if (keys.length > 0) await redis.unlink(keys);
    }
  }

  it('give the same answer to every call of every sequence, and count what they keep', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 60 }), (calls) =>
        expectSame(calls.map((made) => [made])),
      ),
      { numRuns: 150 },
    );
  });

  // One script for all of a turn, which shares what ordinary ones look at and write, and asks the rules for the others.
  it.each<[string, Form]>([
    ['near their limits', (store) => store],
    ['far from their limits', capped(1_000_000)],
  ])(
    'give the same answer to accepts and completions that come together %s as to one after the other',
    async (_name, form) => {
      const turn = fc.oneof(
        { weight: 3, arbitrary: fc.array(accepting, { minLength: 2, maxLength: 12 }) },
        { weight: 2, arbitrary: fc.array(completing, { minLength: 2, maxLength: 12 }) },
        { weight: 2, arbitrary: call.map((made) => [made]) },
      );
      await fc.assert(
        fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 12 }), (turns) => expectSame(turns, form)),
        { numRuns: 150 },
      );
    },
  );
});
