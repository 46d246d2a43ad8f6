-- Of a sender's rows of version 1, whose keys begin with `old`: their indexes go first, with a value of another type under
-- the names that every older accept and worker reads before it writes; so those fail from then on. Then, step by step,
-- some rows, which the caller writes anew. Answers the clock, the rows (of each: index, member, row as JSON, place, body,
-- key id, keys to be deleted), how many members it
-- has passed over, and whether anything is left.
--
--   ARGV[1]  from; kinds: 'r' records first, whose ends older processes still may write, then 'tnf', then 'o': nonces;
--            done: of each that is written index, member and keys
local old = base:sub(1, -4)
if call('TYPE', old .. ':x').ok ~= 'string' then
  if call('EXISTS', old .. ':x') == 1 and call('RENAMENX', old .. ':x', base .. 'old') == 0 then
    call('ZUNIONSTORE', base .. 'old', 2, base .. 'old', old .. ':x', 'AGGREGATE', 'MAX')
  end
  call('UNLINK', old .. ':s', old .. ':q', old .. ':l', old .. ':k')
  for _, index in ipairs({ ':x', ':d' }) do call('SET', old .. index, 'version 2') end
end
for _, one in ipairs(asked.done) do
  call('ZREM', one[1], one[2])
  call('UNLINK', unpack(one, 3))
end

local FIELDS = {
  r = { 'state', 'claim', 'claimedBy', 'owner', 'fence', 'leaseUntil', 'attempts', 'crashes', 'acked', 'insertedAt',
    'place', 'notBefore', 'parkedUntil', 'lastError', 'rawHash', 'canonicalHash', 'taskId', 'instant', 'instantMs',
    'terminal', 'reemission', 'afterTerminal', 'ahead', 'afterFinal', 'bodyBytes', 'expiresAt' },
  t = { 'holder', 'mark', 'markTerminal', 'expiresAt' },
  n = { 'key', 'expiresAt' },
  f = { 'key', 'expiresAt' },
  o = { 'key', 'acceptId', 'expiresAt' },
}
local found, passed, bytes = {}, 0, 0

local function give(index, member, kind, keyid, keys)
  local text, row = call('GET', keys[1]), {}
  local values = text and { cmsgpack.unpack(text) } or {}
  for i, field in ipairs(FIELDS[kind]) do row[field] = values[i] end
  local body = kind == 'r' and call('GET', keys[2]) or ''
  bytes = bytes + #body
  found[#found + 1] = { index, member, text and cjson.encode(row) or '', string.format('%.17g', row.place or 0), body,
    keyid, unpack(keys) }
end

local keyid = asked.kinds == 'o' and call('ZRANGE', old .. ':i', 0, 0)[1]
if keyid then
  for _, id in ipairs(call('ZRANGE', old .. ':z:' .. keyid, 0, 199)) do
    give(old .. ':z:' .. keyid, id, 'o', keyid, { old .. ':o:' .. #keyid .. ':' .. keyid .. ':' .. id })
  end
  -- The next key id, with the next call.
  if #found == 0 then passed = call('ZREM', old .. ':i', keyid) end
elseif asked.kinds ~= 'o' then
  for _, member in ipairs(call('ZRANGE', base .. 'old', asked.from, asked.from + 199)) do
    local kind, id = member:sub(1, 1), member:sub(2)
    local key = old .. ':' .. kind .. ':' .. id
    if bytes > 1048576 then break end
    if not asked.kinds:find(kind, 1, true) then passed = passed + 1
    elseif kind == 'r' then
      -- Out of the way of an older process that is about to end it.
      if call('EXISTS', key) == 1 then call('RENAME', key, base .. 'old:' .. id) end
      give(base .. 'old', member, kind, '', { base .. 'old:' .. id, old .. ':b:' .. id })
    else give(base .. 'old', member, kind, '', { key, old .. ':y:' .. id }) end
  end
end
return { now, found, passed, call('EXISTS', base .. 'old') + call('EXISTS', old .. ':i') }
