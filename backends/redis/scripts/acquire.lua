-- acquire puts a new fence on the record.
-- KEYS  1 record
-- ARGV  1 fence  2 birth  3 generation  4 run  5 lease in µs  6 "1": by force
--       7 the generation that is expected, or ""
--       8 birth, 9 revision and 10 chain that the caller saw, or ""  11 unit
local f = redis.call('HMGET', KEYS[1], 'birth', 'fence', 'rev', 'gen', 'exp', 'start', 'run', 'turns', 'grave')
if not f[1] then return {'absent', f[9]} end
if f[1] ~= ARGV[2] then return {'reborn', f[1]} end
-- The clock is the server's (S-8). What a script writes, not the script, goes to
-- replicas and to the file, so its time is the same everywhere.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local function earlier(a, b) return #a < #b or (#a == #b and a < b) end
-- What the new owner finds, in load's form and of the same moment.
local function found()
  local r = redis.call('HMGET', KEYS[1], 'birth', 'rev', 'chain', 'log', 'last', 'head',
    'fence', 'gen', 'start', 'exp', 'released', 'sig:stop', 'sig:cancel', 'turns')
  local last = redis.call('HGET', KEYS[1], 'c:' .. r[5])
  local units = redis.call('HMGET', KEYS[1], 'u:' .. r[2], 'u:' .. (string.match(last or '', '%d+') or ''),
    'o:' .. r[14])
  return {'ok', string.format('%.0f', now), redis.call('HEXISTS', KEYS[1], 'e:' .. r[4]), r, last, units[1], units[2], units[3]}
end
-- The same acquire again, its answer was lost: it is the owner already.
if f[2] == ARGV[1] then return found() end
if ARGV[7] ~= '' and ARGV[7] ~= f[4] then return {'generation', f[1], f[2], f[3], f[4]} end
if f[2] and now < (tonumber(f[5] or '') or 0) and ARGV[6] ~= '1' then return {'busy', f[1], f[2], f[5], f[6]} end
if ARGV[8] ~= '' then
  if ARGV[8] ~= f[1] or earlier(f[3], ARGV[9]) then return {'regressed', f[3]} end
  if ARGV[10] ~= '' and ARGV[9] ~= '0' then
    local unit = redis.call('HGET', KEYS[1], 'u:' .. ARGV[9])
    if not unit then return {'damaged', 'the history lacks revision ' .. ARGV[9]} end
    if cjson.decode(string.sub(unit, 10)).chain ~= ARGV[10] then return {'regressed', f[3]} end
  end
end

local turn = string.format('%.0f', (tonumber(f[8] or '') or 0) + 1)
if f[7] ~= ARGV[4] then redis.call('HDEL', KEYS[1], 'sig:stop', 'sig:cancel') end
redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'gen', ARGV[3], 'run', ARGV[4], 'start', string.format('%.0f', now),
  'exp', string.format('%.0f', now + ARGV[5]), 'released', '0', 'turns', turn, 'o:' .. turn, ARGV[11])
return found()
