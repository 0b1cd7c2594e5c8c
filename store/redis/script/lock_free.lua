local key, owner = P .. 'lock:' .. ARGV[4], ARGV[5]
if call('HGET', key, 'owner') == owner then call('DEL', key) end
return {'ok'}
