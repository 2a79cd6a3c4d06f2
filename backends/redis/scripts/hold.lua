-- hold leases what a worker picked up while it waited, unless it took too long and
-- somebody else has it.
-- KEYS  1 items  2 leases  3 held    ARGV  1 nonce  2 worker  3 lease in µs  4… entries
local t = redis.call('TIME')
local ends = string.format('%.0f', t[1] * 1000000 + t[2] + ARGV[3])
local out = {'ok', ends}
for i = 4, #ARGV do
  local entry = ARGV[i]
  local mine = redis.call('XPENDING', KEYS[1], 'workers', entry, entry, '1', 'pickup')
  local found = mine[1] and redis.call('XRANGE', KEYS[1], entry, entry) or {}
  if found[1] then
    local n = string.format('%.0f', (tonumber(found[1][2][6] or '') or 0) + 1)
    redis.call('XCLAIM', KEYS[1], 'workers', 'pickup', '0', entry, 'JUSTID') -- see lease
    redis.call('HSET', KEYS[3], entry, ARGV[1] .. ' ' .. n .. ' ' .. ARGV[2])
    redis.call('ZADD', KEYS[2], ends, entry)
    redis.call('XCLAIM', KEYS[1], 'workers', 'held', '0', entry, 'JUSTID')
    out[#out + 1] = {entry, n, found[1][2]}
  end
end
return out
