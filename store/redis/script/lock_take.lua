-- What is held under a lease that is no more, nobody holds.
local key, owner, ttl = P .. 'lock:' .. ARGV[4], ARGV[5], ARGV[6]
local v = call('HMGET', key, 'owner', 'node', 'lease')
if v[1] and (v[2] == '' or call('GET', P .. 'lease:' .. v[2]) == v[3]) then return {'busy'} end
call('HSET', key, 'owner', owner, 'node', NODE, 'lease', LEASE)
call('PEXPIRE', key, ttl)
return {'ok'}
