local node = P .. 'node:' .. ARGV[4]
if call('EXISTS', node) == 0 then return {'none'} end
call('HSET', node, 'cordoned', ARGV[5])
return {'ok'}
