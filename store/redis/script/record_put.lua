-- A record is a hash: itself as JSON, fields that scripts look at, and the sets
-- in which it is, as pairs of a set's name and the member of it. Sets sort by
-- their members' bytes.
local kind, id, data, hash, notice, fields = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], tonumber(ARGV[9])
local key = P .. kind .. ':' .. id
if hash ~= '' then
  local other = call('GET', P .. 'hash:' .. hash)
  if other and other ~= id then return {'taken'} end
  local old = call('HGET', key, 'hash')
  if old then call('DEL', P .. 'hash:' .. old) end
  call('SET', P .. 'hash:' .. hash, id)
  call('HSET', key, 'hash', hash)
end
local sets = call('HGET', key, 'sets')
if sets then
  sets = cjson.decode(sets)
  for i = 1, #sets, 2 do call('ZREM', P .. sets[i], sets[i + 1]) end
end
local at = 10
for i = 1, fields do
  call('HSET', key, ARGV[at], ARGV[at + 1])
  at = at + 2
end
sets = {}
while at < #ARGV do
  call('ZADD', P .. ARGV[at], 0, ARGV[at + 1])
  sets[#sets + 1], sets[#sets + 2] = ARGV[at], ARGV[at + 1]
  at = at + 2
end
call('HSET', key, 'data', data, 'sets', cjson.encode(sets))
-- This set is no part of the record: a tenant stays in it until its last run goes.
if kind == 'run' then call('ZADD', P .. 'run:tenants', 0, call('HGET', key, 'tenant')) end
if notice ~= '' then call('PUBLISH', P .. 'notices', notice) end
return {'ok'}
