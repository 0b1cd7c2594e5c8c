-- What all nodes must have the same: the first one says what, and so does one that
-- finds nobody else alive.
local same, lease = ARGV[4], ARGV[5]
local was = call('HMGET', P .. 'agreed', 'same', 'lease')
if was[1] and (was[1] ~= same or was[2] ~= lease) then
  for _, node in ipairs(call('ZRANGE', P .. 'nodes', 0, -1)) do
    if node ~= NODE and leased(node) then return {was[1] ~= same and 'secret' or 'lease', was[2]} end
  end
end
call('HSET', P .. 'agreed', 'same', same, 'lease', lease)
return {'ok'}
