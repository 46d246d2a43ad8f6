-- When the first ones come due: at most `max`, and of the suspects the first; and when the last `max` do, which are due too
-- where that is later than `longest` ms from now: how many these are, and of suspects. Reads only: a worker asks every
-- sender before it takes from those that have work.
local far = string.format('(%.0f', now + asked.longest)
local function tooFar(set) return #call('ZRANGEBYSCORE', base .. set, far, '+inf', 'LIMIT', 0, asked.max) end
return { now, call('ZRANGE', base .. 'd', 0, asked.max - 1, 'WITHSCORES'), call('ZRANGE', base .. 'u', 0, 0, 'WITHSCORES'), tooFar('d'), tooFar('u') }
