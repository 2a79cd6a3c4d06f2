-- resolve settles a commit whose outcome is not known (S-4).
-- KEYS  1 record  2 log  3 history
-- ARGV  1 commit id  2 fence, or of a shared record 3 birth  4 revision and 5 chain as
--       the caller knows them  6 revision and 7 chain that "never" makes of them
--       8 ring field  9 unit  10 its sum
-- A caller that does not know revision and chain sends "" and is told; the chain of a
-- "never" is a SHA-256 and is made by the caller.
local f = redis.call('HMGET', KEYS[1], 'birth', 'fence', 'rev', 'chain', 'log', 'sig:stop', 'sig:cancel',
  'c:' .. ARGV[1], ARGV[8], 'grave')
if not f[1] then return {'absent', f[10]} end
local known = f[8]
if known and string.sub(known, 1, 1) == '+' then
  local rev = string.sub(known, 2)
  local unit = redis.call('XRANGE', KEYS[3], rev .. '-0', rev .. '-0')
  if not unit[1] then return {'damaged', 'the history lacks revision ' .. rev} end
  return {'again', f[6], f[7], rev, unpack(unit[1][2])}
end
if (ARGV[2] ~= '' and f[2] ~= ARGV[2]) or (ARGV[3] ~= '' and f[1] ~= ARGV[3]) then return {'fenced', f[1], f[2]} end
if known then return {'never', f[6], f[7], f[1], f[3], f[4], f[5]} end
if f[3] ~= ARGV[4] or f[4] ~= ARGV[5] then return {'moved', f[3], f[4], f[1]} end

local unit = redis.pcall('XADD', KEYS[3], ARGV[6] .. '-0', 'unit', ARGV[9], 'sum', ARGV[10], 'log', f[5])
if type(unit) == 'table' and unit.err then
  if string.find(unit.err, 'smaller than', 1, true) then
    return {'damaged', 'the history goes on after revision ' .. f[3]}
  end
  return unit
end
if f[9] then redis.call('HDEL', KEYS[1], 'c:' .. f[9]) end
redis.call('HSET', KEYS[1], 'rev', ARGV[6], 'chain', ARGV[7], 'c:' .. ARGV[1], '-' .. ARGV[6], ARGV[8], ARGV[1])
return {'never', f[6], f[7], f[1], ARGV[6], ARGV[7], f[5]}
