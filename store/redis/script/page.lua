-- Records of a set, by id: so many, or fewer when they are large.
local kind, set, after, back, most, bytes = ARGV[4], P .. ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[9])
local ids
if back == '' then
  ids = call('ZRANGEBYLEX', set, after == '' and '-' or '(' .. after, '+', 'LIMIT', 0, most)
else
  ids = call('ZREVRANGEBYLEX', set, after == '' and '+' or '(' .. after, '-', 'LIMIT', 0, most)
end
local found, size, more = {'ok', '', after}, 0, #ids == most
for i, id in ipairs(ids) do
  local data = call('HGET', P .. kind .. ':' .. id, 'data')
  found[3] = id
  if data then
    found[#found + 1] = data
    size = size + #data
    if size >= bytes and i < #ids then
      more = true
      break
    end
  end
end
if more then found[2] = 'more' end
return found
