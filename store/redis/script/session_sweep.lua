-- Some sessions of nodes that are gone, and what is left of such nodes.
local most = tonumber(ARGV[4])
local found = {'ok', number(now())}
for _, node in ipairs(call('ZRANGE', P .. 'nodes', 0, -1)) do
  if not leased(node) then
    if settling() > 0 then return found end
    local ids = call('ZRANGE', P .. 'sessions:at:' .. node, 0, most - 1)
    for _, id in ipairs(ids) do
      if #found > most then return found end
      found[#found + 1] = call('HGET', P .. 'session:' .. id, 'data')
    end
    if #ids == 0 and call('EXISTS', P .. 'node:' .. node) == 0 then call('ZREM', P .. 'nodes', node) end
  end
end
return found
