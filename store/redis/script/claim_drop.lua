call('DEL', P .. 'claim:' .. ARGV[4])
return {'ok'}
