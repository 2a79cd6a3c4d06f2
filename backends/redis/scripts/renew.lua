-- renew extends a lease by the server's clock (S-8).
-- KEYS  1 record    ARGV  1 fence  2 lease in µs
local f = redis.call('HMGET', KEYS[1], 'birth', 'fence', 'grave')
if not f[1] then return {'absent', f[3]} end
if ARGV[1] == '' or f[2] ~= ARGV[1] then return {'fenced', f[1], f[2]} end
local t = redis.call('TIME')
redis.call('HSET', KEYS[1], 'exp', string.format('%.0f', t[1] * 1000000 + t[2] + ARGV[2]))
return {'ok'}
