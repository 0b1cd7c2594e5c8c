local id = call('GET', P .. 'hash:' .. ARGV[4])
local data = id and call('HGET', P .. 'key:' .. id, 'data')
if not data then return {'none', number(NODE == '' and 0 or settling())} end
return {'ok', data}
