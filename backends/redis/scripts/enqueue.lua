-- enqueue adds an item at the end of a queue, unless its id is there.
-- KEYS  1 items  2 ids    ARGV  1 id  2 data
-- What stands in ids without an item was left by somebody else; it counts for nothing.
local at = redis.call('HGET', KEYS[2], ARGV[1])
if at and #redis.call('XRANGE', KEYS[1], at, at) > 0 then return {'again'} end
local entry = redis.call('XADD', KEYS[1], '*', 'id', ARGV[1], 'data', ARGV[2], 'n', '0')
redis.call('HSET', KEYS[2], ARGV[1], entry)
return {'ok'}
