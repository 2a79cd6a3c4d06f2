-- load reads a record without its log.
-- KEYS  1 record  2 log  3 history
-- The unit of the current revision comes with it: the client compares the two.
local f = redis.call('HMGET', KEYS[1], 'birth', 'rev', 'chain', 'log', 'last', 'head', 'headsum', 'headrev',
  'fence', 'gen', 'start', 'exp', 'released', 'sig:stop', 'sig:cancel', 'grave')
if not f[1] then return {'absent', f[16]} end
local t = redis.call('TIME')
local now = string.format('%.0f', t[1] * 1000000 + t[2])
local unit = f[2] and redis.call('XRANGE', KEYS[3], f[2] .. '-0', f[2] .. '-0')[1]
return {'ok', now, redis.call('XLEN', KEYS[2]), f, unit and unit[2] or {}}
