-- commit applies one commit whole, or not at all (S-1).
-- KEYS  1 record  2 log  3 history
-- ARGV  1 commit id  2 birth  3 fence, "": a shared record  4 revision and 5 chain it
--       builds on  6 revision and 7 chain that it makes  8 ring field  9 "1": check,
--       don't write  10 unit  11 its sum  12 head  13 its sum
--       14, 15 …  meta and data of each entry
-- Revisions are compared as texts: a number here holds 53 bits. Every check is above
-- the line; a script that fails keeps what it wrote.
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
if f[1] ~= ARGV[2] or (ARGV[3] ~= '' and f[2] ~= ARGV[3]) then return {'fenced', f[1], f[2]} end
if f[3] ~= ARGV[4] or f[4] ~= ARGV[5] then return {'moved', f[3], f[4]} end
if known then return {'never'} end
if ARGV[9] == '1' then return {'weak'} end
local log = redis.call('XLEN', KEYS[2])
if log ~= tonumber(f[5]) then return {'damaged', 'the log has ' .. log .. ' entries, and the record says ' .. f[5]} end

-- ---- checks above, writes below; the record's hash, which decides, comes last
local n = (#ARGV - 13) / 2
local length = string.format('%.0f', log + n)
local unit = redis.pcall('XADD', KEYS[3], ARGV[6] .. '-0', 'unit', ARGV[10], 'sum', ARGV[11], 'log', length)
if type(unit) == 'table' and unit.err then
  -- It was the first write, so nothing was written. A full memory or a missing
  -- permission goes to the caller as it is.
  if string.find(unit.err, 'smaller than', 1, true) then
    return {'damaged', 'the history goes on after revision ' .. f[3]}
  end
  return unit
end
for i = 1, n do
  redis.call('XADD', KEYS[2], string.format('%.0f-', log + i) .. ARGV[6], 'sum', ARGV[12 + 2 * i], 'data', ARGV[13 + 2 * i])
end
if f[9] then redis.call('HDEL', KEYS[1], 'c:' .. f[9]) end
redis.call('HSET', KEYS[1], 'rev', ARGV[6], 'chain', ARGV[7], 'log', length, 'last', ARGV[1],
  'head', ARGV[12], 'headsum', ARGV[13], 'headrev', ARGV[6], 'c:' .. ARGV[1], '+' .. ARGV[6], ARGV[8], ARGV[1])
return {'ok', f[6], f[7], length}
