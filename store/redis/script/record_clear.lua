-- Drops records of a set, some at a time. A member begins with so many bytes
-- that are no part of the id, and comes before ARGV[7], if there is one.
local kind, set, skip, before, most = ARGV[4], P .. ARGV[5], tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8])
local last = '+'
if before ~= '' then last = '(' .. before end
local members = call('ZRANGEBYLEX', set, '-', last, 'LIMIT', 0, most)
local n = 0
for _, member in ipairs(members) do
  n = n + drop(kind, string.sub(member, skip + 1))
  call('ZREM', set, member)
end
return {'ok', number(n), #members == most and 'more' or ''}
