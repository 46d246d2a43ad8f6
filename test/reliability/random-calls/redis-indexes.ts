import type { Redis } from 'ioredis';
import { expect } from 'vitest';

/**
 * Compares the indexes with the rows themselves: KEYS[1] the sender's base, ARGV[1] the clock's offset. A row that Redis has
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
    if ('OUWSBHM'):find(kind, 1, true) then expect(name .. ' listed', listed('a:' .. kind, id), true) end
    if ('rtnoOUWSBHM'):find(kind, 1, true) then
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

/** Compares the counts and indexes of each sender with every row of it. */
export async function expectIndexesRight(redis: Redis, prefix: string, offsetMs: number): Promise<void> {
  const keys = (await redis.keys(`${prefix}*:4:*`)).filter((key) => !key.startsWith(`${prefix}{registry}`));
  const bases = new Set(keys.map((key) => /^.*?\}:4:/.exec(key)?.[0] ?? expect.fail(key)));
  for (const base of bases) expect(await redis.eval(CHECK, 1, base, offsetMs), base).toEqual([]);
}
