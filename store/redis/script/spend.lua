if call('SET', P .. 'spent:' .. ARGV[4], '1', 'NX', 'PX', ARGV[5]) then return {'ok', 'first'} end
return {'ok', ''}
