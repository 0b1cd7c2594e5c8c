local found = {'ok'}
for _, node in ipairs(call('ZRANGE', P .. 'nodes', 0, -1)) do
  local v = call('HMGET', P .. 'node:' .. node, 'data', 'seen', 'cordoned', 'away')
  if v[1] then
    local state = 'ready'
    if not leased(node) then state = 'gone' elseif v[4] ~= '' then state = 'away' elseif v[3] ~= '' then state = 'cordoned' end
    found[#found + 1], found[#found + 2], found[#found + 3] = v[1], v[2], state
  end
end
return found
