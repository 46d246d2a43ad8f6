var u=class extends Error{name="ConfigError";code="config_error"};var f=class extends Error{name="Fault";code;constructor(n,t,r){super(t,r),this.code=n}};function ae(e,n,t){let r=Object.keys(t);if(typeof n!="object"||n===null)throw new u(`${e}: give an object of options. Known: ${r.join(", ")}.`);let o=Object.keys(n).find(s=>!Object.hasOwn(t,s));if(o!==void 0)throw new u(`${e}: ${o} is not known. Known: ${r.join(", ")}.`)}var En=/[\0\p{Surrogate}]/u;function p(e){return En.test(e)||e.startsWith("")?""+JSON.stringify(e):e}function R(e){return e.startsWith("")?JSON.parse(e.slice(1)):e}function ie(e){let n=[];for(let[t,r]of Object.entries(e))r===void 0||r===!1||n.push(t,vn(r));return n}function vn(e){return typeof e=="string"?p(e):typeof e=="number"?e:e===!0?"1":Buffer.from(e.buffer,e.byteOffset,e.byteLength)}var Tn=1e3;function C(e){return Math.max(e,2592e6)}function ce(e){let{key:n,owner:t,permanent:r,unstarted:o,retry:s,backoffMs:a,error:i,retentionMs:c}=e,d=i?.slice(0,Tn);return{key:n,owner:t,permanent:r,unstarted:o,attempts:s.attempts,backoffMs:a,error:d,retentionMs:c}}var de=1e3,q=e=>Math.min(e*50,de);function On(e){return{autoResendUnfulfilledCommands:!1,maxRetriesPerRequest:0,reconnectOnError:n=>/^(READONLY|UNBLOCKED)/.test(n.message),socketTimeout:e,maxLoadingRetryTime:de,enableAutoPipelining:!1,commandTimeout:void 0,monitor:!1,protocol:2,stringNumbers:!1}}function le(e,n){let t=e.duplicate,r=On(n),{redisOptions:o}=e.options;return M(e)?t.call(e,[],{redisOptions:{...o,...r},scaleReads:"master",clusterRetryStrategy:q,enableAutoPipelining:!1,enableOfflineQueue:!0,lazyConnect:!0}):t.call(e,{...r,retryStrategy:q,sentinelRetryStrategy:q,readOnly:!1,role:"master",enableOfflineQueue:!0,lazyConnect:!0})}function M(e){return"nodes"in e&&typeof e.nodes=="function"}function S(e){return e.nodes?.("master")??[e]}function ue(e){let n=e;if(["duplicate","evalshaBuffer","evalBuffer","pipeline","call","connect"].some(r=>typeof n?.[r]!="function"))throw new u("redisStore: client is not a client of ioredis. Pass new Redis(\u2026) or new Redis.Cluster(\u2026) of ioredis >= 5.");$("keyPrefix of the client",e.options.keyPrefix??"")}function $(e,n){if(/[{}]/.test(n))throw new u(`redisStore: ${e} contains { or }. Take one without.`)}function fe({place:e,sender:n,key:t}){return Buffer.from(JSON.stringify([e,n,t])).toString("base64url")}function me(e){if(e!==void 0)try{let[n,t,r]=JSON.parse(Buffer.from(e,"base64url").toString());return typeof n!="string"||!Number.isFinite(Number(n))?null:typeof t=="string"&&typeof r=="string"?{place:n,sender:t,key:r}:null}catch{return null}}var Cn=new TextDecoder;function y(e){return e instanceof Uint8Array?Cn.decode(e):String(e)}function v(e){let n=new Map,t=Array.isArray(e)?e:[];for(let r=0;r+1<t.length;r+=2)n.set(y(t[r]),t[r+1]);return{has:r=>n.has(r),text:r=>R(y(n.get(r))),number:r=>Number(y(n.get(r))),bytes:r=>new Uint8Array(n.get(r)),list:r=>n.get(r)??[]}}var E=e=>({changed:e.number("changed")===1});function pe(e){return{lease:{owner:e.text("owner"),fence:e.number("fence"),attempt:e.number("attempt")},reemission:e.has("reemission"),afterTerminal:e.has("afterTerminal"),afterFinal:e.has("afterFinal"),ahead:e.has("ahead")}}var Mn={won:e=>({kind:"won",...E(e),...pe(e),...e.has("body")&&{body:e.bytes("body")}}),queued:e=>({kind:"queued",...E(e),reemission:e.has("reemission"),ahead:e.has("ahead")}),done:e=>({kind:"done",...E(e),state:e.text("state"),died:e.has("died")}),"in-flight":e=>({kind:"in-flight",...E(e)}),"task-busy":e=>({kind:"task-busy",...E(e)}),stale:e=>({kind:"stale",...E(e)}),"over-cap":e=>({kind:"over-cap",limit:e.text("limit")}),conflict:()=>({kind:"conflict"}),burned:()=>({kind:"burned"}),replayed:()=>({kind:"replayed"}),"rate-abuse":()=>({kind:"rate-abuse"})};function we(e,n){if(!Array.isArray(e))return Pn(y(e),n);let t=v(e),r=t.text("pressure"),o=r===""?[]:r.split(",");return{result:{...Mn[t.text("kind")](t),pressure:o},nonces:t.number("nonces"),now:t.number("now")}}function Pn(e,{acceptId:n}){let[t,r,o]=e.split(" ");return{result:{kind:"won",changed:!1,lease:{owner:n,fence:1,attempt:1},reemission:!1,afterTerminal:!1,afterFinal:!1,ahead:o==="1",pressure:[]},nonces:Number(r),now:Number(t)}}function ye(e,n){return{events:n.list("events").map(t=>In(e,v(t))),died:n.list("died").map(t=>({sender:e,key:R(y(t))})),...n.has("next")&&{nextDueMs:n.number("next")}}}function In(e,n){return{sender:e,key:n.text("key"),body:n.bytes("body"),...pe(n)}}function F(e,n){return{sender:e,key:n.text("key"),state:n.text("state"),acked:n.number("acked")===1,attempts:n.number("attempts"),crashes:n.number("crashes"),insertedAt:n.number("insertedAt"),notBefore:n.number("notBefore"),leaseUntil:n.number("leaseUntil"),bodyBytes:n.number("bodyBytes"),...n.has("taskId")&&{taskId:n.text("taskId")},...n.has("lastError")&&{lastError:n.text("lastError")},...n.has("body")&&{body:n.bytes("body")}}}var Nn=1e3,he=64,Ln=4;async function L(e,n){let t=[];for(let r=0;r<e.length;r+=he)t.push(...await Promise.all(e.slice(r,r+he).map(n)));return t}function ke(e){return{lease:n=>e(t=>Dn(t,n)),list:n=>e(t=>_n(t,n)),inspect:(n,t)=>e(async({run:r})=>{let o=await r("inspect",n,{key:t});return Array.isArray(o)?F(n,v(o)):void 0}),redrive:(n,t)=>e(async({run:r})=>y(await r("redrive",n,{key:t}))),discard:(n,t,r)=>e(async({run:o})=>y(await o("discard",n,{key:t,retentionMs:r}))),overdueMs:()=>e(Un)}}async function Dn(e,n){let t=[...new Set([...n.senders,...await e.registry.senders()])],r={events:[],died:[],next:new Map};for(let s=0;s<Ln&&r.events.length<n.max;s+=1){let a=await Bn(e,t,n.max-r.events.length,r);if(a.size===0)break;await L([...a.keys()],async i=>{Gn(r,i,await Kn(e,i,{...n,max:a.get(i)??0}))})}let o=Math.min(...r.next.values());return{events:r.events,died:r.died,...o<1/0&&{nextDueMs:o}}}async function Bn(e,n,t,{next:r}){let o=[];await L(n,async a=>{let[i,...c]=(await e.read("due",a,{max:t})).map(Number);i===void 0?r.delete(a):r.set(a,Math.max(0,i));for(let d of[i,...c])d!==void 0&&d<=0&&o.push({sender:a,inMs:d})}),o.sort((a,i)=>a.inMs-i.inMs);let s=new Map;for(let{sender:a}of o.slice(0,t))s.set(a,(s.get(a)??0)+1);return s}async function Un({registry:e,read:n}){let t=await L(await e.senders(),async o=>Number((await n("due",o,{max:0}))[0]??1/0)),r=Math.min(...t);return r<=0?0-r:void 0}async function Kn(e,n,{owner:t,max:r,leaseMs:o,retry:s,retentionMs:a}){let c={call:e.newId(),owner:t,max:r,leaseMs:o,retentionMs:a,markMs:C(a),...s};return ye(n,v(await e.run("lease",n,c)))}function Gn(e,n,{events:t,died:r,nextDueMs:o}){e.events.push(...t),e.died.push(...r),o===void 0?e.next.delete(n):e.next.set(n,o)}var Hn={queued:":q",leased:":l",dead:":k"};async function _n(e,n){let t=Math.min(Math.max(1,Math.floor(n.limit)),Nn),r=me(n.after);if(r===null)throw new u("inbox.list: after is not the next of a page before.");let o=n.sender===void 0?await e.registry.senders():[n.sender],a=(await L(o,async l=>qn(e,l,n,{after:r,limit:t}))).flat().sort(Wn),i=a.slice(0,t),c=i.at(-1),d=c&&a.length>t?fe({place:c.place,...c.record}):void 0;return{records:i.map(({record:l})=>l),...d!==void 0&&{next:d}}}function Wn(e,n){let t=Number(e.place)-Number(n.place);return t!==0||e.record.sender===n.record.sender?t:e.record.sender<n.record.sender?-1:1}async function qn(e,n,{state:t},{after:r,limit:o}){return(await e.read("list",n,{list:Hn[t],limit:o+1,from:r?.place??"0",all:r===void 0||n>r.sender,behind:r&&n===r.sender?r.key:void 0})).map(a=>{let i=v(a);return{place:i.text("place"),record:F(n,i)}})}var $n=1e4;function ge(e,{tag:n}){let t=new Map;return{of:r=>{let o=t.get(r);if(o)return o;let s=`${e}{${n(p(r))}}`,a=[s,`${s}:w`];return t.size<$n&&t.set(r,a),a},registry:[`${e}{registry}`,`${e}{registry}:s`],version:`${e}{registry}:v`}}var be=String.raw`
local function nonceKey() return ':o:' .. #A.keyid .. ':' .. A.keyid .. ':' .. A.nonce end

-- Live ones of the key id, and of the sender.
local function countNonces()
  local own, sum = live(':z:' .. A.keyid), 0
  for _, keyid in ipairs(call('ZRANGEBYSCORE', base .. ':i', '(' .. string.format('%.0f', now), '+inf')) do
    sum = sum + (keyid == A.keyid and own or live(':z:' .. keyid))
  end
  return own, sum
end

local function checkNonce(known, record, own, sum)
  if not A.nonce then return nil end
  if not known then
    local full = own >= num('maxNoncesPerKey') or num('otherNonces') + sum >= num('maxNonces')
    return full and 'rate-abuse' or nil
  end
  local same = known.key == A.key
  if same and known.acceptId == A.acceptId then return nil end
  if same and record and not record.acked then return nil end
  return 'replayed'
end

-- To the next minute, so that most nonces find their key id noted for long enough.
local function noteKeyid(expiresAt)
  local noted = tonumber(call('ZSCORE', base .. ':i', A.keyid) or 0)
  if noted >= expiresAt then return end
  local at = expiresAt + NONCE_SLACK
  call('ZREMRANGEBYSCORE', base .. ':i', '-inf', now)
  call('ZADD', base .. ':i', at, A.keyid)
  for _, index in ipairs({ ':i', ':z:' .. A.keyid }) do
    if call('PTTL', base .. index) < at - now then
      call('PEXPIREAT', base .. index, redisTime(at) + NONCE_SLACK)
    end
  end
end

-- 1 where it is new.
local function saveNonce(known)
  if not A.nonce or (known and known.acceptId == A.acceptId) then return 0 end
  local expiresAt = known and known.expiresAt or now + num('nonceMs')
  put(NONCE, nonceKey(), { key = A.key, acceptId = A.acceptId, expiresAt = expiresAt }, NONCE_SLACK)
  local new = call('ZADD', base .. ':z:' .. A.keyid, expiresAt, A.nonce)
  noteKeyid(expiresAt)
  return new
end
`;var Ae=String.raw`
local offset, otherNonces, at = struct.unpack('<dd', ARGV[1])
`,xe=String.raw`
local flags, leaseMs, retentionMs, markMs, attempts, crashes, maxRecords, maxPendingBytes, maxNoncesPerKey, maxNonces,
  nonceMs, instantMs, reports, acceptId, keyid, nonce, key, rawHash, canonicalHash, taskId, instant, notificationId,
  behind = struct.unpack('<dddddddddddddI4c0I4c0I4c0I4c0I4c0I4c0I4c0I4c0I4c0', ARGV[1], at)
if band(flags, 1) == 0 then keyid, nonce = nil, nil end
if band(flags, 4) == 0 then canonicalHash = nil end
if band(flags, 8) == 0 then taskId = nil end
if band(flags, 16) == 0 then instant = nil end
if band(flags, 32) == 0 then instantMs = nil end
`,Se=String.raw`
local function is(flag) return band(flags, flag) ~= 0 end
if not is(2) then key, rawHash = nil, nil end
if not is(64) then notificationId = nil end
local named = { 'offset', offset, 'mode', is(256) and 'inbox' or 'inline', 'acceptId', acceptId, 'body', body,
  'onChanged', is(1024) and 'conflict' or 'first-wins', 'leaseMs', leaseMs, 'retentionMs', retentionMs, 'markMs', markMs,
  'attempts', attempts, 'crashes', crashes, 'maxRecords', maxRecords, 'maxPendingBytes', maxPendingBytes,
  'maxNoncesPerKey', maxNoncesPerKey, 'maxNonces', maxNonces, 'otherNonces', otherNonces, 'nonceMs', nonceMs,
  'reports', reports }
for name, value in pairs({ keyid = keyid, nonce = nonce, key = key, rawHash = rawHash, canonicalHash = canonicalHash,
  taskId = taskId, instant = instant, instantMs = instantMs, notificationId = notificationId,
  terminal = is(128) and '1' or nil, final = is(512) and '1' or nil }) do
  named[#named + 1] = name
  named[#named + 1] = value
end
for i = 1, reports do
  named[#named + 1] = 'report' .. i
  named[#named + 1] = ARGV[arg + i]
end
`;var Re=String.raw`
-- As of the last look, and with what was accepted since.
local loaded, real, now, micros, since, sum, kept, counted, expired = false
-- Live nonces of the sender; of each key id until when it is noted, its live ones, its expired ones.
local nonces, keyids
-- Members of the indexes that are still to be written.
local counts, bytes, places, used
-- Expiries are mostly the same in all of them.
local recordUntil, recordScore, recordLife, markedUntil, markScore, markLife
`,Ee=String.raw`
if not loaded then
  local time = call('TIME')
  real, micros = time[1] * 1000 + math.floor(time[2] / 1000), time[2] % 1000
  now = real + offset
  since = '(' .. format('%.0f', now)
  local totals = call('HMGET', base .. ':s', 'sum', 'kept')
  sum, kept = tonumber(totals[1] or 0), tonumber(totals[2]) or 0
  counted = call('ZCOUNT', base .. ':x', since, '+inf')
  expired = call('ZCARD', base .. ':x') - counted
  loaded, nonces = true, nil
end
`,ve=String.raw`
if not nonces then
  nonces, keyids = 0, {}
  local index = call('ZRANGE', base .. ':i', 0, -1, 'WITHSCORES')
  for i = 1, #index, 2 do
    local noted = tonumber(index[i + 1])
    if noted > now then
      local live = call('ZCOUNT', base .. ':z:' .. index[i], since, '+inf')
      nonces, keyids[index[i]] = nonces + live, { noted, live, false }
    end
  end
end
`,Z=String.raw`
if counts then
  local list = base .. ':l'
  call('ZADD', base .. ':x', unpack(counts))
  call('HSET', base .. ':s', 'sum', format('%.0f', sum), unpack(bytes))
  call('ZADD', list, unpack(places))
  if kept < math.huge and call('PTTL', list) == -1 then
    call('PEXPIREAT', list, format('%.0f', math.ceil(kept - now + real) + 3600000))
  end
  for id, members in pairs(used or {}) do call('ZADD', base .. ':z:' .. id, unpack(members)) end
  counts, used = nil, nil
end
loaded = false
`;var Zn=String.raw`
repeat
  -- An event; not inbox (256), no notification id (64), no final report (512).
  if band(flags, 834) ~= 2 or reports > 0 or #body == 0 then break end
  local r, t = base .. ':r:' .. key, taskId and base .. ':t:' .. taskId
  local o = nonce and base .. ':o:' .. #keyid .. ':' .. keyid .. ':' .. nonce
  local found = call('MGET', r, t or r, o or r)
  if found[1] or found[2] or found[3] then break end
${Ee}
  local leaseUntil, markUntil = now + leaseMs, now + markMs
  local expiresAt = math.max(now + retentionMs, leaseUntil)
  if (taskId and math.max(expiresAt, markUntil) or expiresAt) > kept then break end
  if sum + #body >= maxPendingBytes * ${.8} then break end
  if counted == 0 or expired >= 16 or counted + 2 >= maxRecords * ${.8} then break end
  if expired > 0 and call('ZSCORE', base .. ':x', 'r' .. key) then break end

  local nonceUntil, id = now + nonceMs, nil
  if nonce then
${ve}
    id = keyids[keyid]
    if not id or id[1] < nonceUntil or id[2] + 1 >= maxNoncesPerKey * ${.8}
      or otherNonces + nonces + 1 >= maxNonces * ${.8} then break end
    id[3] = id[3] or call('ZCARD', base .. ':z:' .. keyid) - id[2]
    if id[3] >= 16 then break end
  end

  local ahead = instantMs ~= nil and instantMs > now + ${3e5}
  local place = now + micros / 1000
  if recordUntil ~= expiresAt then
    recordUntil, recordScore = expiresAt, format('%.17g', expiresAt)
    recordLife = format('%.0f', math.ceil(expiresAt - now + real) + 3600000)
  end
  local n = counts and #counts or 0
  if n == 0 then counts, bytes, places = {}, {}, {} end
  counts[n + 1], counts[n + 2] = recordScore, 'r' .. key
  if taskId then
    if markedUntil ~= markUntil then
      markedUntil, markScore = markUntil, format('%.17g', markUntil)
      markLife = format('%.0f', math.ceil(markUntil - now + real) + 3600000)
    end
    counts[n + 3], counts[n + 4] = markScore, 't' .. taskId
    call('SET', t, cmsgpack.pack(key, nil, nil, markUntil), 'PXAT', markLife)
  end
  call('SET', r, cmsgpack.pack('leased', 'won', acceptId, acceptId, 1, leaseUntil, 1, 0, nil, now, place, now, 0, nil,
    rawHash, canonicalHash, taskId, instant, instantMs, band(flags, 128) ~= 0 or nil, nil, nil, ahead or nil, nil, #body,
    expiresAt), 'PXAT', recordLife)
  call('SET', base .. ':b:' .. key, body, 'PXAT', recordLife)
  sum, counted, micros, n = sum + #body, counted + (taskId and 2 or 1), micros + 1, #bytes
  bytes[n + 1], bytes[n + 2] = 'of ' .. key, #body
  places[n + 1], places[n + 2] = format('%.17g', place), key
  if nonce then
    call('SET', o, cmsgpack.pack(key, acceptId, nonceUntil), 'PXAT', math.ceil(nonceUntil - now + real) + 60000)
    used = used or {}
    local members = used[keyid] or {}
    used[keyid], n = members, #members
    members[n + 1], members[n + 2] = nonceUntil, nonce
    nonces, id[2] = nonces + 1, id[2] + 1
  end
  answer = format('%.0f %.0f %d', now, nonces or 0, ahead and 1 or 0)
until true
`;function Te(e){return`
local call, base, band, format = redis.call, KEYS[1], bit.band, string.format
${Ae}${Re}
local answers, arg, most = {}, 2, #ARGV[1]
-- Clearances of 256 rows where bodies are near or over the cap: for all of them together, for nobody else is served
-- meanwhile.
local clearances = 16
while at <= most do
  local answer, body = nil, ARGV[arg]
${xe}${Zn}
  if not answer then
${Z}${Se}
    local function rules(ARGV)
${e}
    end
    answer = rules(named)
  end
  answers[#answers + 1], at, arg = answer, behind, arg + 1 + reports
end
${Z}
return answers
`}var A=String.raw`
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
`;var h=String.raw`
local call, base, A = redis.call, KEYS[1], {}
for i = 1, #ARGV, 2 do A[ARGV[i]] = ARGV[i + 1] end
local function num(name) return tonumber(A[name]) end
local time = call('TIME')
local real = time[1] * 1000 + math.floor(time[2] / 1000)
local now = real + num('offset')
local SLACK, NONCE_SLACK, AHEAD = 3600000, 60000, ${3e5}
local LISTS = { queued = ':q', leased = ':l', dead = ':k' }
local RECORD = { 'state', 'claim', 'claimedBy', 'owner', 'fence', 'leaseUntil', 'attempts', 'crashes', 'acked',
  'insertedAt', 'place', 'notBefore', 'parkedUntil', 'lastError', 'rawHash', 'canonicalHash', 'taskId', 'instant',
  'instantMs', 'terminal', 'reemission', 'afterTerminal', 'ahead', 'afterFinal', 'bodyBytes', 'expiresAt' }
local TASK = { 'holder', 'mark', 'markTerminal', 'expiresAt' }
local MARK = { 'key', 'expiresAt' }
local NONCE = { 'key', 'acceptId', 'expiresAt' }
-- What this script did: whether it wrote, the latest expiry that it gave, and how many rows it added to the count.
local wrote, latest, added = false, 0, 0
-- Bytes of unfinished records, where it changed them; and how an expired row is deleted.
local bytesSum, drop

local function redisTime(at) return math.ceil(at - now + real) end

local function get(fields, key)
  local text = call('GET', base .. key)
  if not text then return nil end
  local values, row = { cmsgpack.unpack(text) }, {}
  for i = 1, #fields do row[fields[i]] = values[i] end
  if row.expiresAt and row.expiresAt <= now then return nil end
  return row
end

local function put(fields, key, row, slack)
  local values = {}
  for i = 1, #fields do values[i] = row[fields[i]] end
  local text = cmsgpack.pack(unpack(values, 1, #fields))
  if row.expiresAt then call('SET', base .. key, text, 'PXAT', redisTime(row.expiresAt) + slack)
  else call('SET', base .. key, text) end
  wrote = true
end

local function live(index) return call('ZCOUNT', base .. index, '(' .. string.format('%.0f', now), '+inf') end

local function dueAt(row)
  if not row.acked then return nil end
  if row.state == 'queued' then return math.max(row.notBefore, row.parkedUntil) end
  if row.state == 'leased' then return math.max(row.leaseUntil, row.parkedUntil) end
  return nil
end

local function seen(row)
  return { state = row.state, bytes = row.bodyBytes, expiresAt = row.expiresAt, due = dueAt(row),
    parked = row.parkedUntil > 0 }
end

local function getRecord(key)
  local row = get(RECORD, ':r:' .. key)
  if row then row.was = seen(row) end
  return row
end

local function bodyOf(key) return call('GET', base .. ':b:' .. key) or '' end

local function saveBody(key, row, was, body)
  local name = base .. ':b:' .. key
  if body and row.bodyBytes > 0 then
    if row.expiresAt then call('SET', name, body, 'PXAT', redisTime(row.expiresAt) + SLACK)
    else call('SET', name, body) end
  elseif row.bodyBytes == 0 then
    if was.bytes and was.bytes > 0 then call('DEL', name) end
  elseif row.expiresAt == was.expiresAt then return
  elseif row.expiresAt then call('PEXPIREAT', name, redisTime(row.expiresAt) + SLACK)
  else call('PERSIST', name) end
end

local function saveBytes(key, row, was)
  local delta = row.bodyBytes - (was.bytes or 0)
  if delta ~= 0 then bytesSum = call('HINCRBY', base .. ':s', 'sum', delta) end
  if not LISTS[row.state] then
    if LISTS[was.state] then call('HDEL', base .. ':s', 'of ' .. key) end
  elseif delta ~= 0 or not LISTS[was.state] then call('HSET', base .. ':s', 'of ' .. key, row.bodyBytes) end
end

local function count(member, expiresAt)
  latest = math.max(latest, expiresAt or math.huge)
  return call('ZADD', base .. ':x', expiresAt or '+inf', member)
end

-- Writes the row and whatever index its change touches.
local function saveRecord(key, row, body)
  local was, is = row.was, seen(row)
  if not was then
    -- What expired under this key and was not cleared away goes first.
    if count('r' .. key, row.expiresAt) == 0 then
      drop('r' .. key)
      count('r' .. key, row.expiresAt)
    end
    added, was = added + 1, {}
  elseif was.expiresAt ~= is.expiresAt then count('r' .. key, row.expiresAt) end
  put(RECORD, ':r:' .. key, row, SLACK)
  saveBody(key, row, was, body)
  saveBytes(key, row, was)
  if was.state ~= is.state then
    if LISTS[was.state] then call('ZREM', base .. LISTS[was.state], key) end
    if LISTS[is.state] then call('ZADD', base .. LISTS[is.state], string.format('%.17g', row.place), key) end
  end
  if is.due then
    if was.due ~= is.due then call('ZADD', base .. ':d', is.due, key) end
  elseif was.due then call('ZREM', base .. ':d', key) end
  if row.taskId and is.parked ~= (was.parked or false) then
    if is.parked then call('ZADD', base .. ':y:' .. row.taskId, string.format('%.17g', row.place), key)
    else call('ZREM', base .. ':y:' .. row.taskId, key) end
  end
  row.was = is
end

local function getTask(id) return id and get(TASK, ':t:' .. id) end

-- Tasks, notification ids and final reports are counted beside the records.
local function saveCounted(kind, fields, id, row)
  put(fields, ':' .. kind .. ':' .. id, row, SLACK)
  added = added + count(kind .. id, row.expiresAt)
end

local function saveTask(id, row, change)
  row = row or {}
  for name, value in pairs(change) do row[name] = value end
  saveCounted('t', TASK, id, row)
end

-- A script that writes nothing gives WAIT nothing to wait for.
local function touch() if not wrote then call('SET', base .. ':w', '1', 'PX', 86400000) end end
`;var b=String.raw`
-- Lua compares strings by the server's locale: instants are compared by their bytes.
local function before(a, b)
  if a == b then return false end
  local i = 1
  while a:byte(i) == b:byte(i) do i = i + 1 end
  return (a:byte(i) or -1) < (b:byte(i) or -1)
end

local function isStale(row, task)
  if not row.instant or not task or not task.mark then return false end
  if row.instant == task.mark then return task.markTerminal == true and not row.terminal end
  return before(row.instant, task.mark)
end

local function isAfterTerminal(row, task)
  if not row.instant or not task or not task.mark then return false end
  return task.markTerminal == true and before(task.mark, row.instant)
end

local function isAhead(row) return row.instantMs ~= nil and row.instantMs > now + AHEAD end

local function isLive(row) return row.state == 'leased' and row.leaseUntil > now end

-- The live lease that holds the task. A key that was forgotten may have come again for another task.
local function holderOf(task, id)
  local holder = task and task.holder and getRecord(task.holder)
  if holder and holder.taskId == id and isLive(holder) then return holder end
  return nil
end

local function parkedUntil(holder)
  if holder.acked then return now + 600000 end
  return holder.leaseUntil
end

-- The next event that waits for the task is due.
local function freeTask(id)
  if not id then return end
  local parked = base .. ':y:' .. id
  local key = call('ZRANGE', parked, 0, 0)[1]
  while key do
    local row = getRecord(key)
    if row then
      row.parkedUntil = 0
      return saveRecord(key, row)
    end
    call('ZREM', parked, key)
    key = call('ZRANGE', parked, 0, 0)[1]
  end
end

local function lease(row, owner)
  row.state, row.owner, row.fence, row.attempts = 'leased', owner, row.fence + 1, row.attempts + 1
  row.leaseUntil, row.parkedUntil = now + num('leaseMs'), 0
  row.expiresAt = nil
  -- Never acknowledged: its retention from its last attempt, and never under a live lease.
  if not row.acked then row.expiresAt = math.max(now + num('retentionMs'), row.leaseUntil) end
end

local function hold(key, row, task)
  if row.taskId then saveTask(row.taskId, task, { holder = key, expiresAt = now + num('markMs') }) end
end

local function finish(key, row, state, expiresAt)
  row.state, row.owner, row.acked, row.parkedUntil, row.expiresAt = state, nil, true, 0, expiresAt
  saveRecord(key, row)
  freeTask(row.taskId)
  return state
end

-- A record that is QUEUED or whose lease is over, for whoever wants to run it: won, dead, stale, or busy and the
-- holder of its task. note(kind) writes what an accept remembers of its answer.
local function claimRecord(key, row, owner, note)
  local attempts, crashes = row.attempts, row.crashes
  if row.state == 'leased' then
    -- Its process died; the claimant's own it was not told of, and no handler ran.
    if row.owner == owner then attempts = attempts - 1 else crashes = crashes + 1 end
  end
  if attempts >= num('attempts') or crashes >= num('crashes') then
    row.attempts, row.crashes = attempts, crashes
    note('died')
    return finish(key, row, 'dead', nil)
  end
  local task = getTask(row.taskId)
  local holder = holderOf(task, row.taskId)
  if holder then return 'busy', holder end
  row.attempts, row.crashes = attempts, crashes
  if isStale(row, task) then
    row.bodyBytes = 0
    note('stale')
    return finish(key, row, 'stale', now + num('retentionMs'))
  end
  lease(row, owner)
  row.ahead, row.afterTerminal = isAhead(row) or nil, isAfterTerminal(row, task) or nil
  note('won')
  saveRecord(key, row)
  hold(key, row, task)
  return 'won'
end

-- What a caller is told of a lease that it won.
local function told(reply, row, owner)
  for _, pair in ipairs({ { 'owner', owner }, { 'fence', row.fence }, { 'attempt', row.attempts },
    { 'reemission', row.reemission and 1 }, { 'afterTerminal', row.afterTerminal and 1 },
    { 'afterFinal', row.afterFinal and 1 }, { 'ahead', row.ahead and 1 } }) do
    if pair[2] then
      reply[#reply + 1] = pair[1]
      reply[#reply + 1] = pair[2]
    end
  end
end
`;var Vn=String.raw`
-- 256 rows a part: 4096 at most in one script, whoever asks.
local function clear(parts)
  local gone = purge(256 * math.min(parts, clearances))
  clearances = clearances - math.ceil(gone / 256)
  return gone
end

-- What has expired never counts.
local function bytesFull(pending)
  local room = num('maxPendingBytes') - #A.body
  while pending > room do
    if clear(1) == 0 then return true end
    pending = bytesSum or pending
  end
  return false
end

local function fresh()
  return { state = 'queued', claim = 'waiting', claimedBy = A.acceptId, fence = 0, leaseUntil = 0, attempts = 0,
    crashes = 0, insertedAt = now, place = now + time[2] % 1000 / 1000, notBefore = now, parkedUntil = 0,
    rawHash = A.rawHash, canonicalHash = A.canonicalHash, taskId = A.taskId, instant = A.instant,
    instantMs = num('instantMs'), terminal = A.terminal and true, bodyBytes = #A.body,
    expiresAt = now + num('retentionMs') }
end

-- Whether the mark was first set by another event.
local function noteMark(kind, id, save)
  local known = get(MARK, ':' .. kind .. ':' .. id)
  if save then
    saveCounted(kind, MARK, id, { key = known and known.key or A.key, expiresAt = now + num('markMs') })
  end
  return known ~= nil and known.key ~= A.key
end

local function insertEvent(row, task)
  if A.notificationId then row.reemission = noteMark('n', A.notificationId, true) or nil end
  for i = 1, num('reports') do
    if noteMark('f', A['report' .. i], A.final) then row.afterFinal = true end
  end
  row.ahead = isAhead(row) or nil
  local holder = holderOf(task, row.taskId)
  local kind = 'task-busy'
  if A.mode == 'inbox' then
    kind, row.claim, row.acked, row.expiresAt = 'queued', 'queued', true, nil
    if holder then row.parkedUntil = parkedUntil(holder) end
  elseif not holder then
    lease(row, A.acceptId)
    kind, row.claim, row.afterTerminal = 'won', 'won', isAfterTerminal(row, task) or nil
  end
  saveRecord(A.key, row, A.body)
  if row.taskId then
    saveTask(row.taskId, task, { holder = kind == 'won' and A.key or (task and task.holder),
      expiresAt = now + num('markMs') })
  end
  return kind
end

local function newEvent(counted, pending)
  local row = fresh()
  local full = counted >= num('maxRecords')
  local task = getTask(row.taskId)
  if isStale(row, task) then
    if not full then
      row.state, row.claim, row.acked, row.bodyBytes = 'stale', 'stale', true, 0
      row.ahead = isAhead(row) or nil
      saveRecord(A.key, row)
    end
    return 'stale', row
  end
  if full then return 'over-cap', nil, 'records' end
  if bytesFull(pending) then return 'over-cap', nil, 'pending-bytes' end
  return insertEvent(row, task), row
end
`,Yn=String.raw`
local function isChanged(row)
  if A.rawHash == row.rawHash then return false end
  return A.canonicalHash == nil or A.canonicalHash ~= row.canonicalHash
end

-- What an accept that comes again was told; nil: decide anew.
local function answerAgain(row)
  if row.claimedBy ~= A.acceptId or row.claim == 'waiting' then return nil end
  if row.claim ~= 'won' then return row.claim end
  local over = row.state == 'leased' and not isLive(row)
  if row.owner ~= row.claimedBy or row.state == 'queued' or over then return nil end
  return 'won'
end

local function onRecord(row)
  local again = answerAgain(row)
  if again then return again end
  if A.onChanged == 'conflict' and isChanged(row) then return 'conflict' end
  if not LISTS[row.state] or row.state == 'dead' then return 'done' end
  if A.mode == 'inbox' then
    if not row.acked then
      row.acked, row.expiresAt = true, nil
      saveRecord(A.key, row)
    end
    return 'in-flight'
  end
  if isLive(row) then return 'in-flight' end
  local kind = claimRecord(A.key, row, A.acceptId, function(claim) row.claim, row.claimedBy = claim, A.acceptId end)
  if kind == 'dead' then return 'died' end
  return kind == 'busy' and 'task-busy' or kind
end
`,jn=String.raw`
purge(16)
local own, sum = 0, 0
if A.nonce then
  purgeNonces(A.keyid, 16)
  own, sum = countNonces()
end
local counted = entries()
local totals = call('HMGET', base .. ':s', 'sum', 'kept')
local pending = tonumber(totals[1] or 0)
local record = A.key and getRecord(A.key)
local changed = record and isChanged(record)
local known = A.nonce and get(NONCE, nonceKey())
local kind, row, limit = checkNonce(known, record, own, sum), record, nil
local new = 0
if not kind then
  if record then kind = onRecord(record)
  elseif A.key then kind, row, limit = newEvent(counted, pending)
  else kind = 'burned' end
  -- The nonce goes with the event or not at all: burned before the event is safe, it would lose the event.
  if kind ~= 'over-cap' then new = saveNonce(known) end
end
keepIndexes(totals[2], row and row.state)
touch()

local function used(max, is) return is >= num(max) * ${.8} end
local pressure = {}
if used('maxRecords', counted + added) then pressure[1] = 'records' end
if used('maxPendingBytes', bytesSum or pending) then
  clear(4)
  if used('maxPendingBytes', bytesSum or pending) then pressure[#pressure + 1] = 'pending-bytes' end
end
local reply = { 'kind', kind == 'died' and 'done' or kind, 'now', now, 'changed', changed and 1 or 0 }
local function say(name, value) reply[#reply + 1] = name; reply[#reply + 1] = value end
if A.nonce then
  if used('maxNoncesPerKey', own + new) then pressure[#pressure + 1] = 'nonces' end
  if used('maxNonces', num('otherNonces') + sum + new) then pressure[#pressure + 1] = 'all-nonces' end
  say('nonces', sum + new)
end
say('pressure', table.concat(pressure, ','))
if limit then say('limit', limit) end
if kind == 'won' or kind == 'queued' then told(reply, row, row.claimedBy) end
if kind == 'won' and changed and row.state ~= 'applied' then say('body', bodyOf(A.key)) end
if kind == 'done' then say('state', row.state) end
if kind == 'died' then say('state', 'dead'); say('died', 1) end
return reply
`,Oe=Te(h+A+b+be+Vn+Yn+jn);var Jn=String.raw`
local counts, bodies, sizes, leased, freed = {}, {}, {}, {}, 0

local function countLater(member, expiresAt)
  latest = math.max(latest, expiresAt)
  counts[#counts + 1] = expiresAt
  counts[#counts + 1] = member
end

-- The same as saveRecord does with a record whose inline lease ends well.
local function saveLater(key, row, was)
  put(RECORD, ':r:' .. key, row, SLACK)
  countLater('r' .. key, row.expiresAt)
  if was.bytes > 0 then bodies[#bodies + 1] = base .. ':b:' .. key end
  sizes[#sizes + 1], leased[#leased + 1], freed = 'of ' .. key, key, freed + was.bytes
end

local function writeShared()
  if counts[1] then call('ZADD', base .. ':x', unpack(counts)) end
  if bodies[1] then call('DEL', unpack(bodies)) end
  if freed > 0 then bytesSum = call('HINCRBY', base .. ':s', 'sum', -freed) end
  if sizes[1] then
    call('HDEL', base .. ':s', unpack(sizes))
    call('ZREM', base .. ':l', unpack(leased))
  end
end
`,zn=String.raw`
local function raiseMark(record)
  if not record.instant or not record.taskId or record.ahead then return end
  local task = getTask(record.taskId) or {}
  -- Never back: a clock that was set back can make a lost lease look live.
  if task.mark and before(record.instant, task.mark) then return end
  task.mark, task.markTerminal, task.expiresAt = record.instant, record.terminal or false, now + num('markMs')
  put(TASK, ':t:' .. record.taskId, task, SLACK)
  countLater('t' .. record.taskId, task.expiresAt)
end

-- done, or lost. Authorized by equality of the owner, as in lua/settle.ts.
local function complete()
  local record = getRecord(A.key)
  if not record or record.owner ~= A.owner or not isLive(record) then
    return record and record.owner == A.owner and record.state == 'applied' and 'done' or 'lost'
  end
  local was, inbox = record.was, record.acked or record.parkedUntil > 0
  record.state, record.acked, record.bodyBytes, record.expiresAt = 'applied', true, 0, now + num('retentionMs')
  raiseMark(record)
  if inbox then saveRecord(A.key, record) else saveLater(A.key, record, was) end
  freeTask(record.taskId)
  return 'done'
end
`,Xn=String.raw`
local answers, at = {}, 1
while at <= #A.items do
  A.retentionMs, A.markMs, A.key, A.owner, at = struct.unpack('<ddI4c0I4c0', A.items, at)
  local ran, answer = pcall(complete)
  if not ran then
    writeShared()
    error(answer, 0)
  end
  answers[#answers + 1] = answer
end
writeShared()
if wrote then letGo() else touch() end
return answers
`,Ce=h+A+b+Jn+zn+Xn;var Me=h+String.raw`
local out = {}
for i, at in ipairs(call('ZRANGE', base .. ':d', 0, num('max'), 'WITHSCORES')) do
  if i % 2 == 0 and (#out == 0 or out[#out] <= 0) then out[#out + 1] = math.ceil(at - now) end
end
return out
`,Pe=h+A+b+String.raw`
local events, keys, died = {}, {}, {}

-- The earliest, of those the oldest.
local function nextKey()
  local first = call('ZRANGEBYSCORE', base .. ':d', '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)
  if not first[1] then return nil end
  local same = call('ZRANGEBYSCORE', base .. ':d', first[2], first[2], 'LIMIT', 0, 16)
  local oldest, place = first[1], math.huge
  for _, key in ipairs(same) do
    local at = tonumber(call('ZSCORE', base .. ':q', key) or call('ZSCORE', base .. ':l', key) or 0)
    if at < place then oldest, place = key, at end
  end
  return oldest
end

local function give(key, row)
  local event = { 'key', key, 'body', bodyOf(key) }
  told(event, row, A.owner)
  events[#events + 1] = event
  keys[#keys + 1] = key
end

local function look(key)
  local row = getRecord(key)
  if not row then return call('ZREM', base .. ':d', key) end
  local kind, holder = claimRecord(key, row, A.owner, function() end)
  if kind == 'won' then give(key, row)
  elseif kind == 'dead' then died[#died + 1] = key
  elseif kind == 'busy' then
    row.parkedUntil = parkedUntil(holder)
    saveRecord(key, row)
  end
end

local again = call('GET', base .. ':a:' .. A.call)
if again then
  for _, key in ipairs({ cmsgpack.unpack(again) }) do
    local row = getRecord(key)
    if row and row.owner == A.owner and isLive(row) then give(key, row) end
  end
  touch()
else
  purge(16)
  for _ = 1, 256 do
    local key = #events < num('max') and nextKey()
    if not key then break end
    look(key)
  end
  if #keys > 0 then
    call('SET', base .. ':a:' .. A.call, cmsgpack.pack(unpack(keys)), 'PX', math.ceil(num('leaseMs')))
  end
  letGo()
end
local soon = call('ZRANGE', base .. ':d', 0, 0, 'WITHSCORES')[2]
local reply = { 'events', events, 'died', died }
if soon then reply[5] = 'next'; reply[6] = math.max(0, math.ceil(soon - now)) end
return reply
`,Ie=String.raw`
local function seenRecord(key, row)
  local out = { 'key', key, 'place', string.format('%.17g', row.place), 'state', row.state, 'acked', row.acked and 1 or 0,
    'attempts', row.attempts, 'crashes', row.crashes, 'insertedAt', row.insertedAt, 'notBefore', row.notBefore,
    'leaseUntil', row.leaseUntil, 'bodyBytes', row.bodyBytes }
  if row.taskId then out[#out + 1] = 'taskId'; out[#out + 1] = row.taskId end
  if row.lastError then out[#out + 1] = 'lastError'; out[#out + 1] = row.lastError end
  return out
end
`,Ne=h+b+Ie+String.raw`
local out, skip = {}, 0
while #out < num('limit') do
  local part = call('ZRANGEBYSCORE', base .. A.list, A.from, '+inf', 'WITHSCORES', 'LIMIT', skip, 100)
  for i = 1, #part, 2 do
    local key, there = part[i], tonumber(part[i + 1]) == num('from')
    local past = there and not A.all and (not A.behind or not before(A.behind, key))
    local row = not past and #out < num('limit') and getRecord(key)
    if row then out[#out + 1] = seenRecord(key, row) end
  end
  if #part < 200 then break end
  skip = skip + 100
end
return out
`,Le=h+Ie+String.raw`
local row = getRecord(A.key)
touch()
if not row then return false end
local out = seenRecord(A.key, row)
if LISTS[row.state] then out[#out + 1] = 'body'; out[#out + 1] = bodyOf(A.key) end
return out
`,De=h+String.raw`
local row = getRecord(A.key)
if not row or row.state ~= 'dead' then
  touch()
  return row and 'other' or 'absent'
end
row.state, row.owner, row.attempts, row.crashes, row.notBefore = 'queued', nil, 0, 0, now
saveRecord(A.key, row)
return 'queued'
`,Be=h+A+b+String.raw`
local row = getRecord(A.key)
if not row or (row.state ~= 'dead' and row.state ~= 'queued') then
  touch()
  return row and 'other' or 'absent'
end
row.bodyBytes = 0
finish(A.key, row, 'stale', now + num('retentionMs'))
letGo()
return 'discarded'
`;var Ue=String.raw`
local senders = tonumber(ARGV[1])
for i = 2, senders + 1 do redis.call('SADD', KEYS[1] .. ':s', ARGV[i]) end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = senders + 2, #ARGV, 3 do
  redis.call('HSET', KEYS[1] .. ':n', ARGV[i], ARGV[i + 1] .. ' ' .. ARGV[i + 2])
end
local out = {}
local counts = redis.call('HGETALL', KEYS[1] .. ':n')
for i = 1, #counts, 2 do
  local nonces, untilMs = counts[i + 1]:match('^(%d+) (%d+)$')
  if tonumber(untilMs) <= now then redis.call('HDEL', KEYS[1] .. ':n', counts[i])
  else
    out[#out + 1] = counts[i]
    out[#out + 1] = nonces
    out[#out + 1] = untilMs
  end
end
return out
`,Ke=String.raw`return redis.call('SMEMBERS', KEYS[1] .. ':s')`;var V=h+A+b,Ge=String.raw`
local record = getRecord(A.key)
local held = record and record.owner == A.owner and isLive(record)
local function endedBy(state) return record ~= nil and record.owner == A.owner and record.state == state end
local function answer(text)
  touch()
  return text
end
`,He=V+Ge+String.raw`
if not held then
  return answer(endedBy('queued') and 'queued' or endedBy('dead') and 'dead' or 'lost')
end
record.lastError = A.error or record.lastError
if not A.unstarted and (A.permanent or record.attempts >= num('attempts')) then
  record.state, record.acked, record.expiresAt = 'dead', true, nil
else
  record.state, record.notBefore, record.expiresAt = 'queued', now + num('backoffMs'), nil
  if A.unstarted then record.attempts = record.attempts - 1 end
  if not record.acked then record.expiresAt = now + num('retentionMs') end
end
saveRecord(A.key, record)
freeTask(record.taskId)
letGo(record.state)
return record.state
`,_e=V+Ge+String.raw`
if not held then return answer('lost') end
record.leaseUntil = now + num('leaseMs')
if record.expiresAt then record.expiresAt = math.max(record.expiresAt, record.leaseUntil) end
saveRecord(A.key, record)
return 'renewed'
`,We=V+String.raw`
local record = getRecord(A.key)
if not record then return 'absent' end
if not LISTS[record.state] or record.state == 'dead' then
  touch()
  return record.state
end
if isLive(record) or holderOf(getTask(record.taskId), record.taskId) then return 'busy' end
return 'free'
`;var Qn={accept:Oe,complete:Ce,fail:He,renew:_e,peek:We,due:Me,lease:Pe,list:Ne,inspect:Le,redrive:De,discard:Be,register:Ue,senders:Ke};function qe(){let e=globalThis.process?.getBuiltinModule?.("node:crypto");if(!e)throw new u("redisStore: this runtime has no node:crypto. Run it on Node >= 20.19.");return{sha1Hex:n=>e.createHash("sha1").update(n).digest("hex"),tag:n=>e.createHash("sha256").update(n).digest("base64url").slice(0,22)}}function $e({sha1Hex:e}){let n=Object.entries(Qn).map(([t,r])=>[t,{source:r,sha:e(r)}]);return Object.fromEntries(n)}var et=/^(READONLY|UNBLOCKED|LOADING|MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|BUSY|Too many Cluster redirections)\b/,nt=/^-?[A-Z]{2,}\b/,T=e=>e instanceof Error?e.message:String(e);function B(e){return T(e).startsWith("NOSCRIPT")}function Fe(e){return T(e).startsWith("MOVED")}function U(e){return/^(NOPERM|NOAUTH|WRONGPASS|ERR unknown command|ERR The user executing the script)/.test(T(e))}function P(e){if(e instanceof f)return!1;let n=T(e);return et.test(n)||!nt.test(n)}function Ze(e){return!(e instanceof f)||/^(ERR|WRONGTYPE)\b/.test(T(e.cause))}var tt=[[/^OOM/,"is out of memory: raise maxmemory, or lower the caps of senders"],[/^MISCONF/,"refuses writes because it cannot write to its disk: free space, then look into its log"],[/^NOPERM|^NOAUTH|^WRONGPASS/,"refuses this user"],[/^READONLY/,"is a replica"],[/^LOADING/,"is loading its data"],[/^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|Too many)/,"Cluster does not serve the slot now"]];function I(e){if(e instanceof f)return e;let n=T(e);if(n.startsWith("NOREPLICAS"))return new f("not_durable","Redis: too few replicas (min-replicas-to-write).",{cause:e});let t=tt.find(([r])=>r.test(n))?.[1];return new f("store_unavailable",t?`Redis ${t}.`:`Redis: ${n}`,{cause:e})}function Ve(e){let n=new Set;return e.on("ready",()=>{for(let t of n)t()}),{ready:t=>{if(e.status!=="ready")return e.status==="end"&&e.connect().catch(()=>{}),new Promise((r,o)=>{let s=()=>{clearTimeout(i),n.delete(a)},a=()=>{s(),r()},i=setTimeout(()=>{s(),o(new f("store_unavailable","Redis: not connected."))},Math.max(0,t-performance.now()));n.add(a)})}}}var je=50,Je=e=>new Promise(n=>{setTimeout(n,e)}),K=({keys:e,args:n})=>[e.length,...e,...n];async function ze(e,{call:n,isSettled:t}){try{return await e.evalshaBuffer(n.script.sha,...K(n))}catch(r){if(!B(r)||t())throw r;return e.evalBuffer(n.script.source,...K(n))}}async function Y({connection:e,gate:n},t){for(let r=1;!t.isSettled();r+=1)try{let o=n.ready(t.deadline);if(o&&await o,t.isSettled())return;t.resolve(await ze(e,t))}catch(o){r===2||!P(o)?t.reject(o):await Je(je)}}async function Xe(e,n,t){let r=n,o=!1;for(let s=1;r.length>0;s+=1){let a=await rt(e,r,t,o),i=a.filter(({job:d,error:l})=>!d.isSettled()&&Ye(s,l));for(let{job:d,error:l}of a)Ye(s,l)||d.reject(l);r=i.map(({job:d})=>d),o=i.some(({error:d})=>B(d));let c=i.find(({error:d})=>Fe(d));c?await ze(e.connection,c.job).catch(()=>{}):r.length>0&&!o&&await Je(je)}}function Ye(e,n){return B(n)?e<=2:e===1&&P(n)}async function rt({connection:e,gate:n},t,r,o){let s=r.replicas(),a=t;try{if(await n.ready(Math.max(...t.map(({deadline:d})=>d))),a=t.filter(d=>!d.isSettled()),a.length===0)return[];let i=e.pipeline();for(let{call:d}of a)ot(i,d,o);i.wait(s,r.waitTimeoutMs);let c=await x(i.exec(),r.timeoutMs)??[];return st(a,c,s)}catch(i){return a.map(c=>({job:c,error:i}))}}function ot(e,n,t){t?e.evalBuffer(n.script.source,...K(n)):e.evalshaBuffer(n.script.sha,...K(n))}function st(e,n,t){let[r,o]=n[e.length]??[new Error("no reply")],s=[];for(let[a,i]of e.entries()){let[c,d]=n[a]??[new Error("no reply")];c??r?s.push({job:i,error:c??r}):Number(o)>=t?i.resolve(d):i.reject(at(Number(o),t))}return s}function at(e,n){return new f("not_durable",`Redis: ${e} replicas have confirmed, waitReplicas is ${n}.`)}async function x(e,n){let t,r=new Promise((o,s)=>{t=setTimeout(()=>s(new f("store_unavailable","Redis: no answer.")),n)});try{return await Promise.race([e,r])}finally{clearTimeout(t)}}function N(e,n){e.add(n);let t=()=>{e.delete(n)};return n.then(t,t),n}var it=128,ct=1e4;function en(e,{schema:n,kept:t},r){let o=new Set,s=Ve(e),i={connection:e,gate:Qe(e,s,{passed:w=>nn(n.passed(w),()=>t.passed(w))})},c={connection:e,gate:Qe(e,s,n)},d=dt(i,r,o),l=0,m=(w,W)=>{if(l>ct)return Promise.reject(new f("store_unavailable","Redis: too many calls are waiting for it."));let{requests:se=1}=w;l+=se;let Rn=lt(w,r.timeoutMs,W,()=>{l-=se});return N(o,Rn)},k=w=>{Y(i,w)},O=w=>{Y(c,w)};return{run:w=>m(w,r.replicas()>0?d:k),read:w=>m(w,O),idle:async()=>{for(;o.size>0;)await Promise.allSettled(o)}}}function nn(e,n){return e?e.then(()=>n()):n()}function Qe(e,n,t){let r=async(o,s)=>{for(await o;e.status!=="ready";)await n.ready(s),await t.passed(s)};return{ready:o=>{let s=nn(n.ready(o),()=>t.passed(o));return s&&r(s,o)}}}function dt(e,n,t){let r=new Map,o=async(s,a)=>{for(;a.length>0;){let i=a.splice(0,it).filter(c=>!c.isSettled());i.length>0&&await Xe(e,i,n)}r.delete(s)};return s=>{let a=e.connection.nodes?s.call.keys[0]??"":"",i=r.get(a);if(i)i.push(s);else{let c=[s];r.set(a,c),N(t,o(a,c))}}}function lt(e,n,t,r){return new Promise((o,s)=>{let a=!1,i=setTimeout(()=>{c(),s(new f("store_unavailable",`Redis: no answer within ${n} ms.`))},n),c=()=>{a||(a=!0,clearTimeout(i),r())};t({call:e,deadline:performance.now()+n,isSettled:()=>a,resolve:d=>{c(),o(d)},reject:d=>{c(),s(I(d))}})})}function tn(){let e=new Map,n=new Set,t=0;return{note:(r,{nonces:o,now:s,lifeMs:a})=>{t=s;let i=Math.max(e.get(r)?.untilMs??0,s+a);e.set(r,{sender:r,nonces:o,untilMs:i}),n.add(r)},others:r=>{let o=0;for(let s of e.values())s.untilMs<=t?e.delete(s.sender):s.sender!==r&&(o+=s.nonces);return o},take:()=>{let r=[...n].flatMap(o=>e.get(o)??[]);return n.clear(),r},hear:r=>{for(let o of r)n.has(o.sender)||e.set(o.sender,o)}}}var ut=1e4;function on(e){let{lane:n,scripts:t,keys:r,counts:o}=e,s=new Map,a=performance.now();return{register:i=>{if(s.has(i))return s.get(i);let c=rn(e,[i],[]);return s.set(i,c),c.then(()=>s.set(i,void 0),()=>s.delete(i)),c},tick:()=>{performance.now()-a<ut||(a=performance.now(),rn(e,[...s.keys()],o.take()).then(e.also).catch(()=>{}))},senders:async()=>(await n.read({script:t.senders,keys:r.registry,args:[]})).map(c=>R(y(c)))}}async function rn({lane:e,scripts:n,keys:t,counts:r},o,s){let a=s.flatMap(({sender:m,nonces:k,untilMs:O})=>[p(m),k,Math.ceil(O)]),i=[o.length,...o.map(p),...a],d=(await e.run({script:n.register,keys:t.registry,args:i})).map(y),l=[];for(let m=0;m+2<d.length;m+=3){let k=R(d[m]??"");l.push({sender:k,nonces:Number(d[m+1]),untilMs:Number(d[m+2])})}r.hear(l)}var ft=32,mt=262144;function j(e){let n=new Map,t=(i,c)=>{n.delete(i),sn(i,c.jobs,e)},{setImmediate:r=i=>setTimeout(i)}=globalThis,o=!1,s=()=>{o=!1;for(let[i,c]of n)t(i,c)},a=(i,c)=>{let d=e.bytesOf(c.item),l=n.get(i);l&&l.bytes+d>mt&&(t(i,l),l=void 0),l||(o||r(s),o=!0,l={jobs:[],bytes:0},n.set(i,l)),l.jobs.push(c),l.bytes+=d,l.jobs.length===ft&&t(i,l)};return{run:(i,c)=>new Promise((d,l)=>{a(i,{item:c,resolve:d,reject:l})})}}async function sn(e,n,t){try{let r=await t.send(e,n.map(({item:o})=>o));for(let[o,{resolve:s,reject:a}]of n.entries())Array.isArray(r)&&o in r?s(r[o]):a(new f("store_unavailable","Redis: an answer is missing."))}catch(r){if(n.length>1&&Ze(r))await Promise.all(n.map(o=>sn(e,[o],t)));else for(let{reject:o}of n)o(r)}}var an=8,pt=13,J=4,g={nonce:1,event:2,canonicalHash:4,task:8,instant:16,instantMs:32,notificationId:64,terminal:128,inbox:256,final:512,conflict:1024};function wt({nonce:e,event:n,mode:t}){let r=(e?g.nonce:0)+(t==="inbox"?g.inbox:0);if(!n)return r;let{canonicalHash:o,task:s,notificationId:a,report:i,onChanged:c}=n;return r+=g.event,o!==void 0&&(r+=g.canonicalHash),s&&(r+=g.task),s?.instant!==void 0&&(r+=g.instant),s?.instantMs!==void 0&&(r+=g.instantMs),s?.terminal&&(r+=g.terminal),a!==void 0&&(r+=g.notificationId),i?.final&&(r+=g.final),c==="conflict"&&(r+=g.conflict),r}function yt(e){let{nonce:n,event:t,limits:r,retry:o,leaseMs:s,retentionMs:a}=e;return[wt(e),s,a,C(a),o.attempts,o.crashes,r.maxRecordsPerSender,r.maxPendingBytesPerSender,r.maxNoncesPerKey,r.maxNonces,n?Math.max(0,n.expiresAtMs-n.nowMs):0,t?.task?.instantMs??0,t?.report?.mediaBuyIds.length??0]}function ht({acceptId:e,nonce:n,event:t}){return[p(e),p(n?.keyid??""),p(n?.nonce??""),p(t?.key??""),t?.rawHash??"",t?.canonicalHash??"",p(t?.task?.id??""),t?.task?.instant??"",p(t?.notificationId??"")]}function cn(e,n){let t=e*an;for(let r of n)t+=J+3*r.length;return t}function z(e,n,t,r){let o=n;for(let s of t)o=e.writeDoubleLE(s,o);for(let s of r){let a=e.write(s,o+J);e.writeUInt32LE(a,o),o+=J+a}return o}var kt=Buffer.alloc(0);function dn(e,{otherNonces:n,offset:t}){let r=e.map(ht),o=Buffer.allocUnsafe(r.reduce((i,c)=>i+cn(pt,c),2*an)),s=z(o,0,[t,n],[]),a=[o];for(let[i,c]of e.entries()){s=z(o,s,yt(c),r[i]??[]);let{body:d,report:l}=c.event??{};a.push(d?Buffer.from(d.buffer,d.byteOffset,d.byteLength):kt);for(let m of l?.mediaBuyIds??[])a.push(p(m))}return a[0]=o.subarray(0,s),a}function ln(e,n){let t=e.map(({key:s,owner:a})=>[p(s),p(a)]),r=Buffer.allocUnsafe(t.reduce((s,a)=>s+cn(2,a),0)),o=0;for(let[s,{retentionMs:a}]of e.entries())o=z(r,o,[a,C(a)],t[s]??[]);return["offset",n,"items",r.subarray(0,o)]}var gt=1024;function un(e,{keys:n,scripts:t,clockOffsetMs:r,counts:o}){let s=d=>(l,m,k,O)=>{let w=Math.round(r()),W=typeof k=="function"?k(w):ie({offset:w,...k});return d({script:t[l],keys:n.of(m),args:W,requests:O})},a=s(e.run),i=j({send:(d,l)=>{let m=o.others(d);return a("accept",d,k=>dn(l,{otherNonces:m,offset:k}),l.length)},bytesOf:({event:d})=>(d?.body.length??0)+gt*(d?.report?.mediaBuyIds.length??0)}),c=j({send:(d,l)=>a("complete",d,m=>ln(l,m),l.length),bytesOf:()=>0});return{run:a,read:s(e.read),accept:d=>i.run(d.sender,d),complete:d=>c.run(d.sender,d)}}function G(e,n){let t=n(),r=!1,o,s=async()=>{let a=n();r=!1;try{await e(),t=a}catch(i){throw r=!0,i}};return{passed:()=>((r||Math.abs(n()-t)>=1e4)&&(o??=s().finally(()=>{o=void 0})),o),due:()=>{r=!0}}}function fn({store:e,place:n,own:t,known:r},o){return new u(`${e}: ${n} schema version ${String(o)}, this package knows ${r}. Upgrade proto-webhooks in this process, or give it ${t} of its own.`)}function mn(e){return e instanceof u?new f("misconfigured",e.message,{cause:e}):e}var H=[6,2];async function pn(e){let n=String(await e.call("INFO")),t=new Map;for(let r of n.split(`\r
`)){let o=r.indexOf(":");o>0&&t.set(r.slice(0,o),r.slice(o+1))}return{info:t,config:r=>bt(e,r)}}async function bt(e,n){try{let t=await e.call("CONFIG","GET",n);return typeof t[1]=="string"?t[1]:void 0}catch(t){if(U(t))return;throw t}}function X(e){return Promise.all(S(e).map(pn))}async function wn(e){for(let n of await X(e))At(n),xt(n,e),await yn(n)}function At({info:e}){let n=e.get("redis_version")??"",[t=0,r=0]=n.split(".").map(Number);if(!(t>H[0]||t===H[0]&&r>=H[1]))throw new u(`redisStore: Redis ${n} is too old. Upgrade it to ${H.join(".")} or later.`)}function xt({info:e},n){if(e.get("role")==="slave")throw new u("redisStore: the client is connected to a replica. Connect it to the primary.");if(e.get("cluster_enabled")==="1"&&!M(n))throw new u("redisStore: the server is a node of a Cluster. Pass new Redis.Cluster([\u2026]).")}async function yn({info:e,config:n}){let t=await n("maxmemory-policy")??e.get("maxmemory_policy");if(!(t===void 0||t==="noeviction"))throw new u(`redisStore: maxmemory-policy is ${t}, which drops acknowledged events when memory is full. Set maxmemory-policy noeviction.`)}var St=1/4;function Q(e,n){return S(e).length>1?n*St:n}async function hn(e,n){let t=S(e),r=Q(e,n.timeoutMs),a=(await Promise.allSettled(t.map(c=>x(Rt(c,n.onDisk),r)))).filter(({status:c})=>c==="rejected").map(({reason:c})=>c),i=a.find(c=>!ee(c));if(i!==void 0)throw i;if(a.length>0&&a.length===t.length)throw a[0]}function ee(e){return!(e instanceof u)&&(e instanceof f||P(e))}async function Rt(e,n){let t=await pn(e);if(await yn(t),n&&await kn(t)===!1)throw new u(`redisStore: answers were on disk when the store was opened. ${te}`)}function Et([e,n]){return/^slave\d+$/.test(e)&&n.includes("state=online")}async function ne(e){let n=await X(e);return Math.min(...n.map(({info:t})=>[...t].filter(Et).length))}var te="For 'disk' set appendonly yes, appendfsync always and no-appendfsync-on-rewrite no on every primary; for 'failover' attach replicas and set waitReplicas too.";async function re(e,n){let t=await X(e),r=await Promise.all(t.map(kn));return r.includes(!1)?"process":r.includes(void 0)?"unknown":n===0?"disk":await ne(e)>=n?"failover":"disk"}async function kn({info:e,config:n}){if(e.get("aof_enabled")==="0")return!1;let[t,r]=[await n("appendfsync"),await n("no-appendfsync-on-rewrite")];if(!(e.get("aof_enabled")===void 0||t===void 0||r===void 0))return t==="always"&&r==="no"}function gn(e,{timeoutMs:n,onDisk:t}){let r=G(async()=>{try{await hn(e,{onDisk:t,timeoutMs:n})}catch(o){throw o instanceof u?new f("not_durable",o.message,{cause:o}):o}},()=>performance.now());return e.on("ready",r.due),e.on("+node",r.due),oe(r)}function oe({passed:e}){return{passed:n=>{let t=e();return t&&x(t,Math.max(0,n-performance.now()))}}}var bn=1;async function _(e,n){let t=await e.call("GET",n);if(t===null||t===String(bn))return;throw fn({store:"redisStore",place:"the keys have",own:"a prefix",known:bn},t)}function An(e,n,{timeoutMs:t,clockOffsetMs:r}){return oe(G(async()=>{try{await x(_(e,n),Q(e,t))}catch(s){if(M(e)&&ee(s))return;throw mn(s)}},()=>performance.now()+r()))}async function Sn(e){let n=le(e.client,e.timeoutMs),t;n.on("error",r=>{t=r});try{await Tt(n,e.timeoutMs),await wn(n),await _(n,e.keys.version),await Ot(n,e.scripts);let r=Ct(n,e.waitReplicas);await r.look();let o=await re(n,0)==="disk",s=Mt(n,{...e,onDisk:o},r);return await s.registry.senders(),s}catch(r){throw n.disconnect(),vt(r,t)}}function vt(e,n){if(e instanceof u)return e;let t=[e,e instanceof f?e.cause:void 0,n].find(U);if(t===void 0)return I(n??e);let r=t instanceof Error?t.message:"the user is refused";return new u(`redisStore: ${r}. Check the client's username and password, and allow it its keys, INFO, SCRIPT, EVAL, EVALSHA, TIME, WAIT and the string, set, hash and sorted-set commands.`,{cause:t})}async function Tt(e,n){let t,r=new Promise((o,s)=>{let a=new f("store_unavailable",`Redis: no connection within ${n} ms.`);t=setTimeout(()=>s(a),n)});try{await Promise.race([e.connect(),r])}finally{clearTimeout(t)}}async function Ot(e,n){for(let t of S(e))await Promise.all(Object.values(n).map(({source:r})=>t.call("SCRIPT","LOAD",r)))}function Ct(e,n){let t=n??0;return{replicas:()=>t,look:async()=>{n===void 0&&t===0&&await ne(e)>0&&(t=1)}}}function Mt(e,n,t){let{keys:r,scripts:o}=n,a={schema:An(e,r.version,n),kept:gn(e,n)},i=en(e,a,{...n,replicas:t.replicas}),c=tn();return{...un(i,{...n,counts:c}),registry:on({lane:i,scripts:o,keys:r,counts:c,also:t.look}),counts:c,newId:()=>globalThis.crypto.randomUUID(),durability:()=>xn(async()=>(await _(e,r.version),re(e,t.replicas()))),clock:()=>xn(async()=>await Pt(e,n)+n.clockOffsetMs()),close:async()=>{await i.idle(),e.disconnect()}}}async function xn(e){try{return await e()}catch(n){throw n instanceof u?n:I(n)}}async function Pt(e,{timeoutMs:n}){let[t=e]=S(e),[r,o]=await x(t.call("TIME"),n);return Number(r)*1e3+Math.floor(Number(o)/1e3)}function es(e){let{open:n,use:t,close:r}=Dt(Lt(e));return{name:"redis",open:n,durability:()=>t(o=>o.durability()),durabilityAdvice:te,accept:o=>t(s=>It(s,o)),complete:o=>t(async({complete:s})=>y(await s(o))),fail:o=>t(async({run:s})=>y(await s("fail",o.sender,ce(o)))),renew:({sender:o,key:s,owner:a,leaseMs:i})=>t(async({run:c})=>y(await c("renew",o,{key:s,owner:a,leaseMs:i}))),peek:(o,s)=>t(async({run:a})=>y(await a("peek",o,{key:s}))),clock:()=>t(o=>o.clock()),inbox:ke(t),close:r}}async function It({registry:e,counts:n,accept:t},r){let{sender:o,nonce:s}=r,a=e.register(o);a&&await a;let i=we(await t(r),r);if(s){let c=s.expiresAtMs-s.nowMs;n.note(o,{nonces:i.nonces,now:i.now,lifeMs:c})}return e.tick(),i.result}var Nt={client:!0,prefix:!0,waitReplicas:!0,waitTimeoutMs:!0,timeoutMs:!0,clockOffsetMs:!0};function Lt(e){ae("redisStore",e,Nt);let{client:n,prefix:t="webhook:",waitReplicas:r,waitTimeoutMs:o=1e3,timeoutMs:s=3e3}=e;ue(n),$("prefix",t);let a={waitReplicas:r??0,waitTimeoutMs:o,timeoutMs:s};for(let[c,d]of Object.entries(a))if(!(Number.isSafeInteger(d)&&d>=(c==="waitReplicas"?0:1)))throw new u(`redisStore: ${c} is ${d}. Give a whole number.`);let i=qe();return{client:n,keys:ge(t,i),scripts:$e(i),clockOffsetMs:e.clockOffsetMs??(()=>0),timeoutMs:s,waitTimeoutMs:o,waitReplicas:r}}function Dt(e){let n=new Set,t,r,o=!1,s=()=>{if(o)throw new f("store_unavailable","The Redis store is closed.")};return{open:async()=>{s(),t??=Sn(e);try{r=await t}catch(a){throw t=void 0,a}},use:async a=>{if(s(),!r)throw new f("store_unavailable","The Redis store is not open yet.");return N(n,a(r))},close:async()=>{if(o)return;o=!0;let a=await t?.catch(()=>{});for(;n.size>0;)await Promise.allSettled(n);await a?.close()}}}export{es as redisStore};
