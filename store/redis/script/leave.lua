local grace, kept = tonumber(ARGV[4]), ARGV[5]
if grace <= 0 then
  call('DEL', P .. 'lease:' .. NODE)
  return {'ok'}
end
call('PEXPIRE', P .. 'lease:' .. NODE, ARGV[4])
call('HSET', P .. 'node:' .. NODE, 'away', '1')
call('PEXPIRE', P .. 'node:' .. NODE, kept)
return {'ok'}
