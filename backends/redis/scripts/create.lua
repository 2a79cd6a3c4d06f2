-- create makes the record with its first commit.
-- KEYS  1 record  2 log  3 history
-- ARGV  1 commit id  2 birth  3 chain  4 ring field  5 "1": check, don't write
--       6 unit  7 its sum  8 head  9 its sum  10, 11 …  meta and data of each entry
-- A record that is there, or was, answers before anything is written.
local f = redis.call('HMGET', KEYS[1], 'birth', 'grave', 'c:' .. ARGV[1])
if f[1] then
  if f[3] and string.sub(f[3], 1, 1) == '+' then
    local unit = redis.call('XRANGE', KEYS[3], string.sub(f[3], 2) .. '-0', string.sub(f[3], 2) .. '-0')
    if not unit[1] then return {'damaged', 'the history lacks revision ' .. string.sub(f[3], 2)} end
    return {'again', string.sub(f[3], 2), unpack(unit[1][2])}
  end
  return {'exists'}
end
-- Births only grow (S-12); equal lengths make text order number order.
if f[2] and (#f[2] > #ARGV[2] or (#f[2] == #ARGV[2] and f[2] >= ARGV[2])) then
  return {'grave', f[2]}
end
if ARGV[5] == '1' then return {'weak'} end
if redis.call('XLEN', KEYS[2]) > 0 or redis.call('XLEN', KEYS[3]) > 0 then
  return {'damaged', 'a log or a history without its record'}
end

local n = (#ARGV - 9) / 2
redis.call('DEL', KEYS[2], KEYS[3])
redis.call('XADD', KEYS[3], '1-0', 'unit', ARGV[6], 'sum', ARGV[7], 'log', n)
for i = 1, n do
  redis.call('XADD', KEYS[2], string.format('%.0f-1', i), 'sum', ARGV[8 + 2 * i], 'data', ARGV[9 + 2 * i])
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'birth', ARGV[2], 'rev', '1', 'chain', ARGV[3], 'log', n, 'last', ARGV[1],
  'head', ARGV[8], 'headsum', ARGV[9], 'headrev', '1', 'released', '1', 'c:' .. ARGV[1], '+1', ARGV[4], ARGV[1])
return {'ok', string.format('%.0f', n), f[2] and 'grave' or ''}
