return {'ok', call('EXISTS', P .. 'spent:' .. ARGV[4]) == 1 and 'spent' or ''}
