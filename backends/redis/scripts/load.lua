-- load reads a record without its log.
-- KEYS  1 record
-- The units of the current revision, of the last commit and of the last owner come with
-- it, and whether the last log entry is there: the client compares them.
local f = redis.call('HMGET', KEYS[1], 'birth', 'rev', 'chain', 'log', 'last', 'head',
  'fence', 'gen', 'start', 'exp', 'released', 'sig:stop', 'sig:cancel', 'turns', 'grave')
if not f[1] then return {'absent', f[15]} end
local t = redis.call('TIME')
local now = string.format('%.0f', t[1] * 1000000 + t[2])
local last = redis.call('HGET', KEYS[1], 'c:' .. (f[5] or ''))
local units = redis.call('HMGET', KEYS[1], 'u:' .. (f[2] or ''), 'u:' .. (string.match(last or '', '%d+') or ''),
  'o:' .. (f[14] or ''))
return {'ok', now, redis.call('HEXISTS', KEYS[1], 'e:' .. (f[4] or '')), f, last, units[1], units[2], units[3]}
