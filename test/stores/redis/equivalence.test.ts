import * as fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Redis } from 'ioredis';
import { memoryStore } from '../../../src/stores/memory.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import { newPrefix, ownRedis } from '../redis-harness.ts';
import type { Call, Form } from '../calls.ts';
import {
  answerOf,
  call,
  capped,
  createTally,
  expectSameAnswer,
  history,
  steppedOffset,
  timeless,
  untilReached,
} from '../calls.ts';

/**
 * What the indexes say against the rows themselves: KEYS[1] the sender's base, ARGV[1] the clock's offset. A row that Redis has
 * let expire is in its index until it is swept.
 */
const CHECK = String.raw`
local wrong, bytes, sum = {}, 0, tonumber(redis.call('GET', KEYS[1] .. 's') or 0)
local function expect(what, a, b) if a ~= b then wrong[#wrong + 1] = what .. ': ' .. tostring(a) .. ' is not ' .. tostring(b) end end
local function listed(index, id) return redis.call('ZSCORE', KEYS[1] .. index, id) ~= false end
local counted, indexed, lists = {}, {}, { 'q', 'l', 'k' }
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
local function live(index, prefix)
  local members, size = redis.call('ZRANGE', KEYS[1] .. index, 0, -1, 'WITHSCORES'), 0
  for i = 1, #members, 2 do
    if redis.call('EXISTS', KEYS[1] .. prefix .. members[i]) == 1 then size = size + 1
    else expect(members[i] .. ' has expired', tonumber(members[i + 1]) <= now, true) end
  end
  return size
end
for _, key in ipairs(redis.call('KEYS', KEYS[1] .. '*')) do
  local name = key:sub(#KEYS[1] + 1)
  local kind, id = name:sub(1, 1), name:sub(3)
  if name:sub(2, 2) == ':' then
    if kind == 'b' then bytes = bytes + redis.call('STRLEN', key) end
    if kind == 'z' then indexed[name] = live(name, 'o:' .. id .. '\0') end
    if kind == 'y' then indexed[name] = redis.call('ZCARD', key) end
    if kind == 'r' or kind == 't' or kind == 'n' or kind == 'o' then
      local head = cjson.decode(redis.call('GET', key):match('^%d+ ([^\n]*)'))
      local keyid, nonce = id:match('^(%Z*)%z(.*)$')
      local index = kind == 'o' and 'z:' .. keyid or 'x'
      counted[index] = (counted[index] or 0) + 1
      local until_ = redis.call('ZSCORE', KEYS[1] .. index, kind == 'o' and nonce or name)
      expect(name .. ' expires', tonumber(until_), head[2] == 0 and math.huge or head[2])
      if kind == 'r' then
        for _, list in ipairs(lists) do expect(id .. ' listed in ' .. list, listed(list, id), head[3] == list) end
        if head[3] == '' or head[3] == 'k' then expect(id .. ' is due', listed('d', id), false) end
        if head[4] ~= '' then
          counted['y:' .. head[4]] = (counted['y:' .. head[4]] or 0) + 1
          expect(id .. ' waits', listed('y:' .. head[4], id), true)
        end
        expect('body of ' .. id, redis.call('EXISTS', KEYS[1] .. 'b:' .. id), head[5] > 0 and 1 or 0)
      end
    end
  end
end
indexed.x = live('x', '')
for index, size in pairs(indexed) do expect('size of ' .. index, size, counted[index] or 0) end
expect('bytes', sum, bytes)
return wrong
`;

/** The sender's counts and indexes, by looking at every row. */
async function expectIndexesRight(redis: Redis, prefix: string, offsetMs: number): Promise<void> {
  const keys = (await redis.keys(`${prefix}*:2:*`)).filter((key) => !key.startsWith(`${prefix}{registry}`));
  const base = /^.*?\}:2:/.exec(keys[0] ?? '')?.[0];
  if (base !== undefined) expect(await redis.eval(CHECK, 1, base, offsetMs)).toEqual([]);
}

/** Accepts of few names, and of many: ordinary ones among others. */
const accepting: fc.Arbitrary<Call> = fc
  .tuple(call, fc.nat(40), fc.boolean())
  .map(([made, key, few]) => ({ ...made, does: 'accept', ...(!few && { accept: key, key, nonce: key }) }));

/** Completions of the same names, mostly by the accept that may have won. */
const completing: fc.Arbitrary<Call> = accepting.map((made) => ({ ...made, does: 'complete' }));

describe('random calls on Redis and on memory', () => {
  const own = ownRedis();

  let tally = createTally();
  beforeEach(() => {
    tally = createTally();
  });

  /** A history on both; calls that come together have no order, and are made on Redis alone. */
  async function expectSame(
    turns: readonly (readonly Call[])[],
    form: Form = (store) => store,
  ): Promise<void> {
    const offset = steppedOffset();
    const clockOffsetMs = offset.ms;
    const prefix = newPrefix();
    const remote = redisStore({ client: own.redis, prefix, clockOffsetMs });
    const memory = memoryStore({ clockOffsetMs });
    const isAlone = turns.every(({ length }) => length === 1);
    let isOne = true;
    await remote.open();
    try {
      for (const turn of turns) {
        offset.before(turn);
        const given = await Promise.all(turn.map((made) => answerOf(form(remote), made)));
        for (const made of isAlone ? turn : []) {
          const answer = await answerOf(form(memory), made);
          tally.note(made, answer);
          isOne = expectSameAnswer(timeless(given[0]), timeless(answer));
        }
        if (!isOne) break;
      }
      await expectIndexesRight(own.redis, prefix, offset.ms());
    } finally {
      await remote.close();
      const keys = await own.redis.keys(`${prefix}*`);
      if (keys.length > 0) await own.redis.unlink(keys);
    }
  }

  it('get the same answers, and the indexes match the rows', async () => {
    const sequences = fc.asyncProperty(history(call), (calls) => expectSame(calls.map((made) => [made])));
    await untilReached(tally, () => fc.assert(sequences, { numRuns: 150 }));
  });

  it.each<[string, Form]>([
    ['near their limits', (store) => store],
    ['far from their limits', capped(1_000_000)],
  ])('keep the indexes of concurrent calls right %s', async (_name, form) => {
    const turn = fc.oneof(
      { weight: 3, arbitrary: fc.array(accepting, { minLength: 2, maxLength: 12 }) },
      { weight: 2, arbitrary: fc.array(completing, { minLength: 2, maxLength: 12 }) },
      { weight: 2, arbitrary: call.map((made) => [made]) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 12 }), (turns) => expectSame(turns, form)),
      { numRuns: 100 },
    );
  });
});
