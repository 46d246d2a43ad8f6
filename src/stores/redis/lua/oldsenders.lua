-- The senders that version 1 registered and that are not taken over yet; no older process registers another.
-- KEYS as in register.lua. ARGV[1]  JSON: senders that are taken over
local call, base, asked = redis.call, KEYS[1], cjson.decode(ARGV[1])
local old = base:sub(1, -4)
if call('TYPE', old .. ':s').ok ~= 'string' then
  if call('EXISTS', old .. ':s') == 1 then
    for _, of in ipairs({ 's', 'old' }) do call('SUNIONSTORE', base .. of, base .. of, old .. ':s') end
  end
  call('DEL', old .. ':n')
  call('SET', old .. ':s', 'version 2')
end
for _, sender in ipairs(asked.done) do call('SREM', base .. 'old', sender) end
return call('SMEMBERS', base .. 'old')
