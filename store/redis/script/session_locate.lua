-- By its id, or by what a live session holds.
local id = ARGV[4]
if ARGV[5] ~= '' then id = call('GET', P .. 'holder:' .. ARGV[5]) end
local rec = id and read(id)
if not rec then
  local wait = NODE == '' and 0 or settling()
  return {'none', number(wait)}
end
local lost = rec.state ~= 'ended' and gone(rec.node)
return {'ok', call('HGET', P .. 'session:' .. id, 'data'), lost and 'lost' or '', number(now())}
