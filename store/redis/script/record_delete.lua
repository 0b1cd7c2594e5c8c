drop(ARGV[4], ARGV[5])
return {'ok'}
