return {full({tenant = ARGV[4], owner = ARGV[5], memory = ARGV[6]}) or 'ok'}
