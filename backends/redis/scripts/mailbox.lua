-- mailbox reads the pending signals of an owner; it is polled, so it is small.
-- KEYS  1 record    ARGV  1 fence
local f = redis.call('HMGET', KEYS[1], 'birth', 'fence', 'sig:stop', 'sig:cancel', 'grave')
if not f[1] then return {'absent', f[5]} end
if ARGV[1] == '' or f[2] ~= ARGV[1] then return {'fenced', f[1], f[2]} end
return {'ok', f[3], f[4]}
