local key, owner, ttl = P .. 'lock:' .. ARGV[4], ARGV[5], ARGV[6]
if call('HGET', key, 'owner') ~= owner then return {'none'} end
call('PEXPIRE', key, ttl)
return {'ok'}
