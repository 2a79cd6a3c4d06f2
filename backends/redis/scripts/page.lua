-- page reads log entries.
-- KEYS  1 record  2 log
-- ARGV  1 first sequence number  2 how many at most  3 how many bytes of data at most
-- A stream finds its first element in logarithmic time, wherever it is. Elements come a
-- few at a time, fewer when they are large, so that no more than a page is held.
local f = redis.call('HMGET', KEYS[1], 'birth', 'log', 'grave')
if not f[1] then return {'absent', f[3]} end
local out = {'ok', f[1], f[2]}
local limit, room = tonumber(ARGV[2]), tonumber(ARGV[3])
local from, count, got, largest = ARGV[1] .. '-0', 1, 0, 0
while got < limit do
  local part = redis.call('XRANGE', KEYS[2], from, '+', 'COUNT', count)
  for _, e in ipairs(part) do
    local data = e[2][4] or ''
    room = room - #data
    if room < 0 and got > 0 then return out end
    got = got + 1
    out[#out + 1] = e[1]
    out[#out + 1] = e[2][2] or ''
    out[#out + 1] = data
    if #data > largest then largest = #data end
  end
  if #part < count then return out end
  from = '(' .. part[#part][1]
  count = math.max(1, math.min(16, limit - got, math.floor(room / math.max(1, largest))))
end
return out
