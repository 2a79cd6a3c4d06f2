-- rehearse uses every command of the other scripts, on keys that hold nothing.
-- KEYS  1 record  2 log  3 history
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])
redis.call('HSET', KEYS[1], 'a', '1', 'b', '2')
redis.call('HMGET', KEYS[1], 'a', 'b')
redis.call('HGET', KEYS[1], 'a')
redis.call('HDEL', KEYS[1], 'a')
redis.call('XADD', KEYS[2], '1-1', 'a', '1')
redis.call('XADD', KEYS[3], '1-*', 'a', '1')
redis.call('XLEN', KEYS[2])
redis.call('XRANGE', KEYS[2], '1-1', '+', 'COUNT', 1)
redis.call('XDEL', KEYS[2], '1-1')
redis.call('TIME')
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
return {'ok'}
