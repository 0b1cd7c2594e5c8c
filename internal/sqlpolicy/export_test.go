package sqlpolicy

// RefusedBecause is why a function is refused, for the test of the list.
var RefusedBecause = refusedBecause
