-- delete removes a record and leaves its tombstone (S-12).
-- KEYS  1 record
-- ARGV  1 fence, or of a shared record 2 birth  3 tombstone
local f = redis.call('HMGET', KEYS[1], 'birth', 'fence', 'grave')
if not f[1] then return {'absent', f[3]} end
if (ARGV[1] ~= '' and f[2] ~= ARGV[1]) or (ARGV[2] ~= '' and f[1] ~= ARGV[2]) then return {'fenced', f[1], f[2]} end
-- UNLINK: a long log is freed beside the server's work.
redis.call('UNLINK', KEYS[1])
redis.call('HSET', KEYS[1], 'grave', ARGV[3])
return {'ok'}
