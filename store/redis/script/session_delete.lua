local id = ARGV[4]
local old = read(id)
if not old then return {'ok'} end
-- Anybody may forget one that has ended: its node may never be back.
if NODE ~= '' and old.state ~= 'ended' and old.node ~= '' and old.node ~= NODE then return {'elsewhere', id, old.node} end
forget(id, old)
call('DEL', P .. 'session:' .. id)
return {'ok'}
