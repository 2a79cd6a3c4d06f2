-- rehearse uses every command of the other scripts, on a key that holds nothing. A user
-- who lacks those of the queues alone has a store without queues.
-- KEYS  1 record
redis.call('UNLINK', KEYS[1])
redis.call('HSET', KEYS[1], 'a', '1', 'b', '2')
redis.call('HMGET', KEYS[1], 'a', 'b')
redis.call('HGET', KEYS[1], 'a')
redis.call('HEXISTS', KEYS[1], 'a')
redis.call('HDEL', KEYS[1], 'a')
redis.call('TIME')
redis.call('UNLINK', KEYS[1])

local refused = ''
local function try(...)
  if refused ~= '' then return end
  local r = redis.pcall(...)
  if type(r) == 'table' and r.err then refused = r.err end
  return r
end
try('ZADD', KEYS[1], '1', 'a')
try('ZRANGE', KEYS[1], '-inf', '1', 'BYSCORE', 'LIMIT', '0', '1')
try('ZCOUNT', KEYS[1], '1', '2')
try('ZREM', KEYS[1], 'a')
redis.call('UNLINK', KEYS[1])
local entry = try('XADD', KEYS[1], '*', 'a', '1') or '0-1'
try('XGROUP', 'CREATE', KEYS[1], 'workers', '0', 'MKSTREAM')
try('XREADGROUP', 'GROUP', 'workers', 'pickup', 'COUNT', '1', 'STREAMS', KEYS[1], '>')
try('XPENDING', KEYS[1], 'workers', 'IDLE', '1', '-', '+', '1', 'pickup')
try('XCLAIM', KEYS[1], 'workers', 'held', '0', entry, 'JUSTID')
try('XRANGE', KEYS[1], '-', '+')
try('XLEN', KEYS[1])
try('XACK', KEYS[1], 'workers', entry)
try('XDEL', KEYS[1], entry)
redis.call('UNLINK', KEYS[1])
return {'ok', refused}
