-- Sums of whole numbers are Redis's own, which are exact. That of memory is a
-- sum of doubles, as Go would make it.
local key = P .. 'usage:' .. ARGV[4]
local names = {'held', 'cpu', 'executions', 'up', 'down'}
for i, name in ipairs(names) do
  if ARGV[5 + i] ~= '0' then call('HINCRBY', key, name, ARGV[5 + i]) end
end
if ARGV[5] ~= '0' then
  call('HSET', key, 'memory', string.format('%.17g', tonumber(call('HGET', key, 'memory') or 0) + tonumber(ARGV[5])))
end
local sum = call('HMGET', key, 'memory', 'held', 'cpu', 'executions', 'up', 'down')
local out = {'ok'}
for i = 1, 6 do out[i + 1] = sum[i] or '0' end
return out
