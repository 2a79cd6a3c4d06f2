-- queued counts a queue's items.
-- KEYS  1 items  2 leases
local t = redis.call('TIME')
local leased = redis.call('ZCOUNT', KEYS[2], '(' .. string.format('%.0f', t[1] * 1000000 + t[2]), '+inf')
return {'ok', redis.call('XLEN', KEYS[1]), leased}
