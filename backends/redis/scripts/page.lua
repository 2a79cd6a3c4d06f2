-- page reads log entries.
-- KEYS  1 record
-- ARGV  1 first sequence number  2 how many at most  3 how many bytes at most
-- Each entry is a field of a hash, so it costs the same wherever it is. Entries come a
-- few at a time, fewer when they are large, so that no more than a page is held.
local f = redis.call('HMGET', KEYS[1], 'birth', 'log', 'grave')
if not f[1] then return {'absent', f[3]} end
local out = {'ok', f[1], f[2]}
local seq, room = tonumber(ARGV[1]), tonumber(ARGV[3])
local past = math.min(seq + tonumber(ARGV[2]), (tonumber(f[2] or '') or 0) + 1)
local count, largest = 1, 1
while seq < past do
  local fields = {}
  for i = 1, count do fields[i] = string.format('e:%.0f', seq + i - 1) end
  for _, value in ipairs(redis.call('HMGET', KEYS[1], unpack(fields))) do
    if not value then return out end
    room = room - #value
    if room < 0 and #out > 3 then return out end
    out[#out + 1] = value
    if #value > largest then largest = #value end
    seq = seq + 1
  end
  count = math.max(1, math.min(16, past - seq, math.floor(room / largest)))
end
return out
