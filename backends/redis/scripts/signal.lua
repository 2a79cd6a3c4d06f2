-- signal posts to the mailbox of the run that owns the record (S-13).
-- KEYS  1 record    ARGV  1 run  2 field of the mailbox  3 signal
local f = redis.call('HMGET', KEYS[1], 'birth', 'fence', 'run', ARGV[2], 'grave')
if not f[1] then return {'absent', f[5]} end
if not f[2] or f[3] ~= ARGV[1] then return {'other'} end
if not f[4] then redis.call('HSET', KEYS[1], ARGV[2], ARGV[3]) end
return {'ok'}
