-- A session is a hash: its record as JSON, and copies of what scripts look at.
local HOLDS = {creating = true, running = true, paused = true}

local function read(id)
  local v = call('HMGET', P .. 'session:' .. id, 'version', 'tenant', 'owner', 'state', 'node', 'memory', 'holder')
  if not v[1] then return nil end
  return {version = v[1], tenant = v[2], owner = v[3], state = v[4], node = v[5], memory = v[6], holder = v[7]}
end

local function count(key, memory, sign)
  local left = call('HINCRBY', key, 'sessions', sign .. '1')
  if memory ~= '0' then call('HINCRBY', key, 'memory', sign .. memory) end
  if left <= 0 then call('DEL', key) end
end

-- weigh counts a session that has a sandbox, for its tenant and its owner.
local function weigh(rec, sign)
  if not HOLDS[rec.state] then return end
  count(P .. 'held:tenant:' .. rec.tenant, rec.memory, sign)
  count(P .. 'held:owner:' .. rec.owner, rec.memory, sign)
end

local function indexes(rec)
  if rec.state == 'ended' then return {P .. 'sessions:ended'} end
  return {P .. 'sessions:open', P .. 'sessions:of:' .. rec.tenant, P .. 'sessions:at:' .. rec.node}
end

-- forget takes a record out of all that is found by it.
local function forget(id, rec)
  for _, key in ipairs(indexes(rec)) do call('ZREM', key, id) end
  if rec.holder ~= '' and call('GET', P .. 'holder:' .. rec.holder) == id then call('DEL', P .. 'holder:' .. rec.holder) end
  weigh(rec, '-')
end

local function remember(id, rec, data)
  for _, key in ipairs(indexes(rec)) do call('ZADD', key, 0, id) end
  if rec.holder ~= '' then call('SET', P .. 'holder:' .. rec.holder, id) end
  if rec.node ~= '' then call('ZADD', P .. 'nodes', 0, rec.node) end
  weigh(rec, '')
  call('HSET', P .. 'session:' .. id, 'version', rec.version, 'tenant', rec.tenant, 'owner', rec.owner, 'state', rec.state,
    'node', rec.node, 'memory', rec.memory, 'holder', rec.holder, 'data', data)
end

local function over(key, bounds, memory)
  local has = call('HMGET', key, 'sessions', 'memory')
  local most, mostMemory = tonumber(bounds[1] or 0), tonumber(bounds[2] or 0)
  return most > 0 and tonumber(has[1] or 0) + 1 > most
    or mostMemory > 0 and tonumber(has[2] or 0) + tonumber(memory) > mostMemory
end

-- full names the bound that one more session with a sandbox would be over, or nil.
local function full(rec)
  if over(P .. 'held:tenant:' .. rec.tenant, call('HMGET', P .. 'tenant:' .. rec.tenant, 'sessions', 'memory'), rec.memory) then return 'tenant_quota' end
  if over(P .. 'held:owner:' .. rec.owner, {call('HGET', P .. 'key:' .. rec.owner, 'sessions'), '0'}, rec.memory) then return 'key_quota' end
  return nil
end
