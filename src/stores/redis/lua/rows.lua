-- Rows of one sender: the head of every script that works on them. No rule is here: rows are compared and set.
--
--   KEYS[1]  base: prefix, hash tag of the sender and schema version, itself never a key. All below it are in one slot:
--            r:<id> t:<id> n:<id> o:<keyid>\0<id>  record, task, notification, nonce   b:<id>  body of a record
--            x  all of them but nonces, by expiry; z:<keyid>  nonces of a key id, by expiry: their sizes are the counts
--            i  key ids, by when the last of their nonces is over for certain          s  bytes of bodies
--            O:<id> U:<id> W:<id> S:<id>  operation, route, watch, stream    a:<kind>  their ids   d:<kind>  ids of those that are due by when
--            q l k  ids of QUEUED, LEASED, DEAD records by place       d  ids of due records by when, u of due suspects
--            y:<task id>  ids of records that wait for it, by place                     w  written where nothing else is
--   KEYS[2]  base .. 'w'. While the slot is being moved to another node two keys of which one does not exist make Redis
--            answer TRYAGAIN on both nodes: a script never sees a part of the rows.
--   ARGV[1]  JSON; offset: ms added to the server's clock. Names of rows and indexes are without the base.
--
-- A row is a string: version (16 digits), space, its head as JSON, newline, data. The head is { link, expiresAt (0: never),
-- list, waitsFor, bytes }, where what is absent is '', and of a suspect that is due its crashes behind them. A place is the instant of insertion in microseconds.
local call, base, asked = redis.call, KEYS[1], cjson.decode(ARGV[1])
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + asked.offset
local LINK, EXPIRES, LIST, WAITS, BYTES, CRASHES = 1, 2, 3, 4, 5, 6

-- Lua's stack takes 8,000 values.
local function many(command, key, values)
  for from = 1, #values, 4000 do call(command, key, unpack(values, from, math.min(from + 3999, #values))) end
end

-- false where there is none.
local function rowsOf(names)
  local out = {}
  for from = 1, #names, 4000 do
    local keys = {}
    for i = from, math.min(from + 3999, #names) do keys[#keys + 1] = base .. names[i] end
    for _, row in ipairs(call('MGET', unpack(keys))) do out[#out + 1] = row end
  end
  return out
end

local function headOf(row) return cjson.decode(row:match('^%d+ ([^\n]*)')) end

-- Names and rows in pairs: with a record its task, with a task its holder and, before all others, the two that wait. A
-- task that another record of its holder's key is of comes last and would come alone: it is left out.
local function look(names)
  local seen, first, rest = {}, {}, {}
  for round = 1, 3 do
    local asking, nextNames = {}, {}
    for _, name in ipairs(names) do
      local isAlone = round == 3 and name:sub(1, 1) == 't'
      if not seen[name] and not isAlone then asking[#asking + 1], seen[name] = name, true end
    end
    for i, row in ipairs(rowsOf(asking)) do
      local name = asking[i]
      local kind, id = name:sub(1, 1), name:sub(3)
      seen[name] = row
      if row then rest[#rest + 1] = name end
      if kind == 't' then
        for _, waiting in ipairs(call('ZRANGE', base .. 'y:' .. id, 0, 1)) do
          first[#first + 1], nextNames[#nextNames + 1] = 'r:' .. waiting, 'r:' .. waiting
        end
      end
      local link = row and (kind == 'r' or kind == 't') and headOf(row)[LINK] or ''
      if link ~= '' then nextNames[#nextNames + 1] = (kind == 't' and 'r:' or 't:') .. link end
    end
    names = nextNames
  end
  local out = {}
  for _, list in ipairs({ first, rest }) do
    for _, name in ipairs(list) do
      if seen[name] and seen[name] ~= true then
        out[#out + 1], out[#out + 2], seen[name] = name, seen[name], false
      end
    end
  end
  return out
end

local function bodiesOf(ids)
  local out = {}
  for i, id in ipairs(ids) do out[2 * i - 1], out[2 * i] = id, call('GET', base .. 'b:' .. id) end
  return out
end

local function countOf(index)
  return { call('ZCARD', base .. index), index == 'x' and tonumber(call('GET', base .. 's')) or 0 }
end

-- Rows and bytes of each index; behind them the nonces of the sender.
local function countsOf(indexes)
  local out, nonces = {}, 0
  if #indexes == 0 then return out end
  for i, index in ipairs(indexes) do out[i] = countOf(index) end
  for _, keyid in ipairs(call('ZRANGE', base .. 'i', 0, -1)) do nonces = nonces + call('ZCARD', base .. 'z:' .. keyid) end
  out[#out + 1] = nonces
  return out
end
