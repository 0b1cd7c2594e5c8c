local key = P .. 'claim:' .. ARGV[4]
if call('EXISTS', key) == 0 then return {'none'} end
call('HSET', key, 'result', ARGV[5])
return {'ok'}
