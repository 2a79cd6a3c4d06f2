-- resolve settles a commit whose outcome is not known (S-4).
-- KEYS  1 record
-- ARGV  1 commit id  2 fence, or of a shared record 3 birth  4 revision and 5 chain as
--       the caller knows them  6 revision and 7 chain that "never" makes of them  8 unit
-- A caller that does not know revision and chain sends "" and is told; the chain of a
-- "never" is a SHA-256 and is made by the caller.
local f = redis.call('HMGET', KEYS[1], 'birth', 'fence', 'rev', 'chain', 'log', 'sig:stop', 'sig:cancel',
  'c:' .. ARGV[1], 'grave')
if not f[1] then return {'absent', f[9]} end
local known = f[8]
if known and string.sub(known, 1, 1) == '+' then
  return {'again', f[6], f[7], known, redis.call('HGET', KEYS[1], 'u:' .. string.match(known, '%d+'))}
end
if (ARGV[2] ~= '' and f[2] ~= ARGV[2]) or (ARGV[3] ~= '' and f[1] ~= ARGV[3]) then return {'fenced', f[1], f[2]} end
if known then return {'never', f[6], f[7], f[1], f[3], f[4], f[5]} end
if f[3] ~= ARGV[4] or f[4] ~= ARGV[5] then return {'moved', f[3], f[4], f[1]} end

redis.call('HSET', KEYS[1], 'u:' .. ARGV[6], ARGV[8], 'c:' .. ARGV[1], '-' .. ARGV[6] .. ' ' .. f[5],
  'rev', ARGV[6], 'chain', ARGV[7])
return {'never', f[6], f[7], f[1], ARGV[6], ARGV[7], f[5]}
