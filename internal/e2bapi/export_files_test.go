package e2bapi

// What tests of files use.
var (
	Inward  = inward
	Outward = outward
)

// MaxWaiting is how many changes wait for a client.
const MaxWaiting = maxWaiting

// MaxFeeds is how often a sandbox is watched at once.
const MaxFeeds = maxFeeds
