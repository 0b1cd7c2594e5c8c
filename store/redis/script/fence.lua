if NODE ~= '' and call('GET', P .. 'lease:' .. NODE) ~= LEASE then return {'fenced'} end
