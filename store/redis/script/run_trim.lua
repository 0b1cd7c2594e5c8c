-- Ended runs are in a set for each tenant, by age. Of each it drops those from
-- before a time, and the oldest beyond so many; some at a time.
local skip, before, keep, most = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local n = 0
for _, tenant in ipairs(call('ZRANGE', P .. 'run:tenants', 0, -1)) do
  local set = P .. 'run:age:' .. tenant
  local old = call('ZRANGEBYLEX', set, '-', '(' .. before, 'LIMIT', 0, most - n)
  local beyond = math.min(call('ZCARD', set) - keep, most - n)
  if beyond > #old then old = call('ZRANGE', set, 0, beyond - 1) end
  for _, member in ipairs(old) do
    n = n + drop('run', string.sub(member, skip + 1))
    call('ZREM', set, member)
  end
  if call('EXISTS', set) == 0 then call('ZREM', P .. 'run:tenants', tenant) end
  if n >= most then break end
end
return {'ok', number(n), n >= most and 'more' or ''}
