-- All registered senders. KEYS as in register.lua.
return redis.call('SMEMBERS', KEYS[1] .. 's')
