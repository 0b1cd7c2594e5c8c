-- Every script begins with this. KEYS[1] is what all names of keys begin with;
-- its tag in braces keeps them in one slot. The first three arguments are the
-- node that asks, the lease that it believes it has, and for how many
-- milliseconds a directory that was begun anew may lack something.
local P, NODE, LEASE, SETTLE = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local call = redis.call

local function now()
  local t = call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function number(n) return string.format('%.0f', n) end

local function leased(node) return call('EXISTS', P .. 'lease:' .. node) == 1 end

-- Another run of the server, or another server, may have lost something. One that
-- does not say which run it is shows a loss only by what it lacks.
local function run() return string.match(call('INFO', 'server'), 'run_id:(%w+)') or '' end

-- settling is how many milliseconds nodes still have to bring back what was lost.
local function settling()
  local e = call('HMGET', P .. 'epoch', 'run', 'began', 'settle')
  if not e[1] or e[1] ~= run() then return tonumber(SETTLE) end
  return math.max(0, e[2] + e[3] - now())
end

-- gone says that a node lost its lease, and had the time to take it again.
local function gone(node) return node ~= '' and not leased(node) and settling() == 0 end
