local instance, token, ttl, data, name, cordoned, kept = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local lease, node = P .. 'lease:' .. NODE, P .. 'node:' .. NODE
local held = call('GET', lease)
if held and string.match(held, '^%d+ (.*)$') ~= instance then return {'conflict'} end

local time, server = now(), run()
local epoch = call('HMGET', P .. 'epoch', 'run', 'id', 'began', 'settle')
call('HSETNX', P .. 'epoch', 'origin', epoch[2] or name)
if epoch[1] ~= server then
  epoch = {server, name, number(time), SETTLE}
  call('HSET', P .. 'epoch', 'run', server, 'id', name, 'began', epoch[3], 'settle', SETTLE)
  -- The last tokens may be among what was lost: none is given twice.
  local least = math.max(time * 1000, tonumber(token))
  if tonumber(call('GET', P .. 'token') or 0) < least then call('SET', P .. 'token', number(least)) end
end
if held ~= token .. ' ' .. instance then
  call('INCR', P .. 'token')
  token = call('GET', P .. 'token')
end
call('SET', lease, token .. ' ' .. instance, 'PX', ttl)
call('HSETNX', node, 'cordoned', cordoned)
call('HSET', node, 'data', data, 'seen', number(time), 'away', '')
call('PEXPIRE', node, kept)
call('ZADD', P .. 'nodes', 0, NODE)
return {'ok', token, epoch[2], number(math.max(0, epoch[3] + epoch[4] - time)), call('HGET', node, 'cordoned'),
  call('HGET', P .. 'epoch', 'origin') or ''}
