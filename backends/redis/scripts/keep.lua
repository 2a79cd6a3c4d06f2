-- keep does what only the holder of an item may do.
-- KEYS  1 items  2 leases  3 held  4 ids
-- ARGV  1 extend, done or return  2 entry  3 nonce  4 lease in µs
local h = redis.call('HGET', KEYS[3], ARGV[2])
local nonce, n = string.match(h or '', '^(%S+) (%d+)')
if not nonce or nonce ~= ARGV[3] then return {'fenced'} end
if ARGV[1] == 'extend' then
  local t = redis.call('TIME')
  redis.call('ZADD', KEYS[2], string.format('%.0f', t[1] * 1000000 + t[2] + ARGV[4]), ARGV[2])
  return {'ok'}
end
local found = redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2])
local id = found[1] and found[1][2][2] or ''
local known = redis.call('HGET', KEYS[4], id) == ARGV[2]
if ARGV[1] == 'return' and found[1] then
  local entry = redis.call('XADD', KEYS[1], '*', 'id', id, 'data', found[1][2][4], 'n', n)
  redis.call('HSET', KEYS[4], id, entry)
elseif known then
  redis.call('HDEL', KEYS[4], id)
end
redis.call('XACK', KEYS[1], 'workers', ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call('HDEL', KEYS[3], ARGV[2])
return {'ok'}
