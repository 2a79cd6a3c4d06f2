-- commit applies one commit whole, or not at all (S-1).
-- KEYS  1 record
-- ARGV  1 commit id  2 birth  3 fence, "": a shared record  4 revision and 5 chain it
--       builds on  6 revision and 7 chain that it makes
--       8 "weak": check, don't write; "wait": the caller waits for replicas
--       9 unit  10 head  11 …  the log entries
-- Revisions are compared as texts: a number here holds 53 bits. A script that fails
-- keeps what it wrote, so every check is above the line. A commit of one entry, or of
-- none, is a single write; of more, the one that makes them count comes last.
local f = redis.call('HMGET', KEYS[1], 'birth', 'fence', 'rev', 'chain', 'log', 'c:' .. ARGV[1], 'sig:stop', 'sig:cancel', 'grave')
if not f[1] then return {'absent', f[9]} end
local known = f[6]
if known and string.sub(known, 1, 1) == '+' then
  -- A wait covers what this connection wrote. The commit came over another one, so
  -- this one writes what is there already: replicas that have it have the commit.
  if ARGV[8] == 'wait' then redis.call('HSET', KEYS[1], 'rev', f[3]) end
  return {'again', f[7], f[8], known, redis.call('HGET', KEYS[1], 'u:' .. string.match(known, '%d+'))}
end
if f[1] ~= ARGV[2] or (ARGV[3] ~= '' and f[2] ~= ARGV[3]) then return {'fenced', f[1], f[2]} end
if f[3] ~= ARGV[4] or f[4] ~= ARGV[5] then return {'moved', f[3], f[4]} end
if known then return {'never'} end
if ARGV[8] == 'weak' then return {'weak'} end
local n, log = #ARGV - 10, tonumber(f[5] or '')
if not log then return {'damaged', 'the length of the log is unreadable'} end

-- ---- checks above, writes below
local length = string.format('%.0f', log + n)
for i = 1, n - 1 do redis.call('HSET', KEYS[1], string.format('e:%.0f', log + i), ARGV[10 + i]) end
if n > 0 then
  redis.call('HSET', KEYS[1], 'e:' .. length, ARGV[10 + n], 'u:' .. ARGV[6], ARGV[9], 'c:' .. ARGV[1], '+' .. ARGV[6] .. ' ' .. length,
    'rev', ARGV[6], 'chain', ARGV[7], 'log', length, 'last', ARGV[1], 'head', ARGV[10])
else
  redis.call('HSET', KEYS[1], 'u:' .. ARGV[6], ARGV[9], 'c:' .. ARGV[1], '+' .. ARGV[6] .. ' ' .. length,
    'rev', ARGV[6], 'chain', ARGV[7], 'last', ARGV[1], 'head', ARGV[10])
end
return {'ok', f[7], f[8], length}
