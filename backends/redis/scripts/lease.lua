-- lease hands out items: those whose lease ran out, those that somebody picked up and
-- never held, and then those that nobody had.
-- KEYS  1 items  2 leases  3 held
-- ARGV  1 nonce  2 worker  3 lease in µs  4 how many at most  5 how long a pick-up may take, in ms
-- A new item goes through the consumer "pickup" to the consumer "held". Whatever a script
-- did not come to the end of is handed out again after that time. The first write of a
-- hand-out takes no memory, and then a full server lets the others pass: work goes on.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local ends = string.format('%.0f', now + ARGV[3])
local most, out = tonumber(ARGV[4]), {'ok', ends}

local function hold(entry, fields, n, from)
  redis.call('XCLAIM', KEYS[1], 'workers', from, '0', entry, 'JUSTID')
  redis.call('HSET', KEYS[3], entry, ARGV[1] .. ' ' .. string.format('%.0f', n) .. ' ' .. ARGV[2])
  redis.call('ZADD', KEYS[2], ends, entry)
  redis.call('XCLAIM', KEYS[1], 'workers', 'held', '0', entry, 'JUSTID')
  out[#out + 1] = {entry, string.format('%.0f', n), fields}
end

local lost = redis.pcall('XPENDING', KEYS[1], 'workers', 'IDLE', ARGV[5], '-', '+', most, 'pickup')
if lost.err then
  if not string.find(lost.err, 'NOGROUP', 1, true) then return lost end
  redis.call('XGROUP', 'CREATE', KEYS[1], 'workers', '0', 'MKSTREAM')
  lost = {}
end
for _, entry in ipairs(redis.call('ZRANGE', KEYS[2], '-inf', string.format('%.0f', now), 'BYSCORE', 'LIMIT', '0', most)) do
  local found = redis.call('XRANGE', KEYS[1], entry, entry)
  if found[1] then
    hold(entry, found[1][2], (tonumber(string.match(redis.call('HGET', KEYS[3], entry) or '', '^%S+ (%d+)') or '') or 0) + 1, 'held')
  else -- somebody else removed it
    redis.call('ZREM', KEYS[2], entry)
    redis.call('HDEL', KEYS[3], entry)
  end
end
for _, one in ipairs(lost) do
  local found = redis.call('XRANGE', KEYS[1], one[1], one[1])
  if not found[1] then
    redis.call('XACK', KEYS[1], 'workers', one[1])
  elseif #out - 2 < most then
    hold(one[1], found[1][2], (tonumber(found[1][2][6] or '') or 0) + 1, 'pickup')
  end
end
if #out - 2 < most then
  local fresh = redis.call('XREADGROUP', 'GROUP', 'workers', 'pickup', 'COUNT', most - (#out - 2), 'STREAMS', KEYS[1], '>')
  for _, one in ipairs(fresh and fresh[1] and fresh[1][2] or {}) do
    hold(one[1], one[2], (tonumber(one[2][6] or '') or 0) + 1, 'pickup')
  end
end
if #out > 2 then return out end

-- Nothing: when may there be something without a new item?
local first = redis.call('ZRANGE', KEYS[2], '0', '0', 'WITHSCORES')
local wait = first[2] and math.max(1, math.ceil((tonumber(first[2]) - now) / 1000)) or -1
if #redis.call('XPENDING', KEYS[1], 'workers', '-', '+', '1', 'pickup') > 0 and (wait < 0 or wait > tonumber(ARGV[5])) then
  wait = tonumber(ARGV[5])
end
return {'none', wait}
