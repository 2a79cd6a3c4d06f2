-- create makes the record with its first commit.
-- KEYS  1 record
-- ARGV  1 commit id  2 birth  3 chain  4 "weak" or "wait", as for commit
--       5 unit  6 head  7 …  the log entries
-- A record that is there, or was, answers before anything is written.
local f = redis.call('HMGET', KEYS[1], 'birth', 'grave', 'c:' .. ARGV[1])
if f[1] then
  if f[3] and string.sub(f[3], 1, 1) == '+' then
    if ARGV[4] == 'wait' then redis.call('HSET', KEYS[1], 'birth', f[1]) end
    return {'again', f[3], redis.call('HGET', KEYS[1], 'u:' .. string.match(f[3], '%d+'))}
  end
  return {'exists'}
end
-- Births only grow (S-12); equal lengths make text order number order.
if f[2] and (#f[2] > #ARGV[2] or (#f[2] == #ARGV[2] and f[2] >= ARGV[2])) then
  return {'grave', f[2]}
end
if ARGV[4] == 'weak' then return {'weak'} end

-- ---- checks above, writes below; the one with the birth makes the others count, and
-- hides the tombstone of the record before
local n = #ARGV - 6
local length = string.format('%.0f', n)
for i = 1, n do redis.call('HSET', KEYS[1], string.format('e:%.0f', i), ARGV[6 + i]) end
redis.call('HSET', KEYS[1], 'birth', ARGV[2], 'rev', '1', 'chain', ARGV[3], 'log', length, 'last', ARGV[1], 'head', ARGV[6],
  'u:1', ARGV[5], 'c:' .. ARGV[1], '+1 ' .. length, 'turns', '0', 'released', '1')
return {'ok', length, f[2] and 'grave' or ''}
