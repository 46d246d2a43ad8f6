-- When the first ones come due: at most `max`, and of the suspects the first. Reads only: a worker asks every sender before it takes from those that have
-- work.
return { now, call('ZRANGE', base .. 'd', 0, asked.max - 1, 'WITHSCORES'), call('ZRANGE', base .. 'u', 0, 0, 'WITHSCORES') }
