/**
 * What has expired goes: at most so many an accept, so that none pays for all; and the indexes themselves are given
 * to Redis's expiry once nothing in them lasts for ever.
 */
export const PURGE: string = String.raw`
function drop(member)
  local kind, id = member:sub(1, 1), member:sub(2)
  call('ZREM', base .. ':x', member)
  call('DEL', base .. ':' .. kind .. ':' .. id)
  if kind ~= 'r' then return end
  local bytes = call('HGET', base .. ':s', 'of ' .. id)
  if not bytes then return end
  call('HDEL', base .. ':s', 'of ' .. id)
  bytesSum = call('HINCRBY', base .. ':s', 'sum', 0 - bytes)
  call('DEL', base .. ':b:' .. id)
  call('ZREM', base .. ':q', id)
  call('ZREM', base .. ':l', id)
end

local function purge(most)
  local gone = call('ZRANGEBYSCORE', base .. ':x', '-inf', now, 'LIMIT', 0, most)
  for _, member in ipairs(gone) do drop(member) end
  return #gone
end

local function purgeNonces(keyid, most)
  local index = base .. ':z:' .. keyid
  for _, nonce in ipairs(call('ZRANGEBYSCORE', index, '-inf', now, 'LIMIT', 0, most)) do
    call('ZREM', index, nonce)
    call('DEL', base .. ':o:' .. #keyid .. ':' .. keyid .. ':' .. nonce)
  end
end

-- Live records, tasks and marks. Gone with the last of what it counted, the index took along what the others said of it.
local function entries()
  local counted = live(':x')
  if counted == 0 and call('EXISTS', base .. ':x') == 0 then call('DEL', base .. ':s', base .. ':q', base .. ':l') end
  return counted
end

-- Until when the indexes are kept is noted in s (kept), and done again only for what lasts longer; state: that of the
-- record that was written, whose list may have been empty, and so is new.
local function keepIndexes(kept, state)
  if latest <= (tonumber(kept) or 0) then
    local list = LISTS[state]
    if list and kept and kept ~= 'inf' and call('PTTL', base .. list) == -1 then
      call('PEXPIREAT', base .. list, redisTime(tonumber(kept)) + SLACK)
    end
    return
  end
  local last = tonumber(call('ZREVRANGE', base .. ':x', 0, 0, 'WITHSCORES')[2])
  if not last then return end
  call('HSET', base .. ':s', 'kept', last == math.huge and 'inf' or string.format('%.0f', last + SLACK))
  for _, name in ipairs({ ':x', ':s', ':q', ':l' }) do
    if last == math.huge then call('PERSIST', base .. name)
    else call('PEXPIREAT', base .. name, redisTime(last) + 2 * SLACK) end
  end
end

-- After the end of a lease or record: nothing that lasts for ever may be left.
local function letGo(state)
  local kept = call('HGET', base .. ':s', 'kept')
  if kept ~= 'inf' then return keepIndexes(kept, state) end
  if call('EXISTS', base .. ':d') == 0 then latest = math.huge; keepIndexes(0) end
end
`;
