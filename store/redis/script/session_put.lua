-- mode: put, restore (after the directory lost something), lose (its node is
-- gone), bury (it was told to be lost before the directory lost that).
local mode, id, expected, data = ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local new = {version = ARGV[8], tenant = ARGV[9], owner = ARGV[10], state = ARGV[11], node = ARGV[12], memory = ARGV[13], holder = ARGV[14]}
local old = read(id)

-- forgot says that the directory lost that this node took the session: it has it with
-- a sandbox, at a later version, and nobody who lives has it now. new.version is one
-- more than the greater of the two.
local function forgot(rec)
  return HOLDS[new.state] and tonumber(new.version) > tonumber(rec.version) + 1 and (rec.node == '' or not leased(rec.node))
end

if mode == 'restore' and old and (old.state == 'ended' or old.node ~= NODE and not forgot(old)) then return {'gone'} end
if (old and old.version or '0') ~= expected then return {'version'} end
if mode == 'put' and NODE ~= '' and old and old.node ~= '' and old.node ~= NODE then return {'elsewhere', id, old.node} end
if mode == 'lose' and (not old or old.state == 'ended' or not gone(old.node)) then return {'kept'} end

if new.holder ~= '' then
  local other = call('GET', P .. 'holder:' .. new.holder)
  if other and other ~= id then
    local rec = read(other)
    if NODE ~= '' and rec and gone(rec.node) then return {'lost', other} end
    if rec then return {'held', other, rec.node} end
  end
end

-- Bounds are known when every node has said again what it has.
if mode == 'put' and NODE ~= '' and HOLDS[new.state] and not (old and HOLDS[old.state]) then
  local wait = settling()
  if wait > 0 then return {'settling', number(wait)} end
  local bound = full(new)
  if bound then return {bound} end
end

if old then forget(id, old) end
remember(id, new, data)
return {'ok'}
