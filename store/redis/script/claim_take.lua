-- Times are two numbers, seconds and nanoseconds: together they would not fit
-- into one of Lua's.
local key, digest, result, node = P .. 'claim:' .. ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local at, nanos, ttl = tonumber(ARGV[10]), tonumber(ARGV[11]), ARGV[12]
local c = call('HMGET', key, 'digest', 'result', 'node', 'expires', 'nanos')
if c[1] and (at < tonumber(c[4]) or at == tonumber(c[4]) and nanos < tonumber(c[5])) then
  local holder = c[3]
  if NODE ~= '' and (holder == '' or holder == NODE or gone(holder)) then
    holder = ''
    call('HSET', key, 'node', NODE)
  end
  return {'held', c[1], c[2], holder, c[4], c[5]}
end
call('HSET', key, 'digest', digest, 'result', result, 'node', node, 'expires', ARGV[8], 'nanos', ARGV[9])
call('PEXPIRE', key, ttl)
return {'ok'}
