-- release ends an ownership.
-- KEYS  1 record  2 log  3 history    ARGV  1 fence  2 unit  3 its sum
local f = redis.call('HMGET', KEYS[1], 'birth', 'fence', 'rev', 'grave')
if not f[1] then return {'absent', f[4]} end
if ARGV[1] == '' or f[2] ~= ARGV[1] then return {'fenced', f[1], f[2]} end
redis.call('XADD', KEYS[3], f[3] .. '-*', 'unit', ARGV[2], 'sum', ARGV[3])
redis.call('HDEL', KEYS[1], 'fence', 'run', 'start', 'exp', 'sig:stop', 'sig:cancel')
redis.call('HSET', KEYS[1], 'released', '1')
return {'ok'}
