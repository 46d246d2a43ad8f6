-- Deletes expired rows, at most `most`: how many, and how many nonces the sender has left. ARGV[1]  most, keyid ('': none),
-- nonces (of all key ids)
local gone, bytes, keys = 0, 0, {}

local function forget(name, row)
  keys[#keys + 1] = base .. name
  local kind = name:sub(1, 1)
  if string.find('OUWSBHM', kind, 1, true) then call('ZREM', base .. 'a:' .. kind, name:sub(3)) end
  if not row or kind ~= 'r' then return end
  local id, head = name:sub(3), headOf(row)
  if head[LIST] == '' then return end
  bytes = bytes + head[BYTES]
  keys[#keys + 1] = base .. 'b:' .. id
  call('ZREM', base .. head[LIST], id)
  call('ZREM', base .. 'd', id)
  call('ZREM', base .. 'u', id)
  if head[WAITS] ~= '' then call('ZREM', base .. 'y:' .. head[WAITS], id) end
end

local function sweep(index, prefix)
  local ids = call('ZRANGEBYSCORE', base .. index, '-inf', now, 'LIMIT', 0, asked.most - gone)
  local names = {}
  for i, id in ipairs(ids) do names[i] = prefix .. id end
  for i, row in ipairs(prefix == '' and rowsOf(names) or names) do forget(names[i], row) end
  if #ids > 0 then many('ZREM', base .. index, ids) end
  gone = gone + #ids
end

local function sweepKeyid(keyid) sweep('z:' .. keyid, 'o:' .. keyid .. '\0') end

if asked.nonces then
  local keyids = call('ZRANGE', base .. 'i', 0, -1, 'WITHSCORES')
  for i = 1, #keyids, 2 do
    if gone < asked.most then sweepKeyid(keyids[i]) end
    local isOver = tonumber(keyids[i + 1]) <= now and call('EXISTS', base .. 'z:' .. keyids[i]) == 0
    if isOver then call('ZREM', base .. 'i', keyids[i]) end
  end
elseif asked.keyid ~= '' then sweepKeyid(asked.keyid)
else sweep('x', '') end
for from = 1, #keys, 4000 do call('DEL', unpack(keys, from, math.min(from + 3999, #keys))) end
if bytes ~= 0 then call('DECRBY', base .. 's', bytes) end
if call('EXISTS', base .. 'x') == 0 then call('DEL', base .. 's') end
return { gone, countsOf({ 'x' })[2] }
