local function drop(kind, id)
  local key = P .. kind .. ':' .. id
  local sets = call('HGET', key, 'sets')
  if not sets then return 0 end
  sets = cjson.decode(sets)
  for i = 1, #sets, 2 do call('ZREM', P .. sets[i], sets[i + 1]) end
  return call('DEL', key)
end
