-- rehearse uses every command of the other scripts, on a key that holds nothing.
-- KEYS  1 record
redis.call('UNLINK', KEYS[1])
redis.call('HSET', KEYS[1], 'a', '1', 'b', '2')
redis.call('HMGET', KEYS[1], 'a', 'b')
redis.call('HGET', KEYS[1], 'a')
redis.call('HEXISTS', KEYS[1], 'a')
redis.call('HDEL', KEYS[1], 'a')
redis.call('TIME')
redis.call('UNLINK', KEYS[1])
return {'ok'}
