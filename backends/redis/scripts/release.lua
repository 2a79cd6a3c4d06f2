-- release ends an ownership.
-- KEYS  1 record    ARGV  1 fence  2 unit
local f = redis.call('HMGET', KEYS[1], 'birth', 'fence', 'turns', 'grave')
if not f[1] then return {'absent', f[4]} end
if ARGV[1] == '' or f[2] ~= ARGV[1] then return {'fenced', f[1], f[2]} end
local turn = string.format('%.0f', (tonumber(f[3] or '') or 0) + 1)
redis.call('HDEL', KEYS[1], 'fence', 'run', 'start', 'exp', 'sig:stop', 'sig:cancel')
redis.call('HSET', KEYS[1], 'released', '1', 'turns', turn, 'o:' .. turn, ARGV[2])
return {'ok'}
