package redis

import (
	"crypto/tls"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/cove-sandbox/cove"
)

// Config says which Redis, and for whom.
type Config struct {
	// URL is redis://, rediss:// or unix:// for one server; or
	// redis+sentinel://[user:password@]host:port,host:port/master for one that
	// Sentinels watch; or redis+cluster://host:port,host:port. rediss+… is with TLS.
	URL string
	// Node is who writes. Without one there is no lease, and nothing is fenced.
	Node string
	// Instance is the node's home: two homes with one Node are a Conflict.
	Instance string
	// Same is a digest of what all nodes must have in common beside the lease; "" is
	// not compared.
	Same   string
	Lease  time.Duration // 0 is DefaultLease
	Prefix string        // "" is DefaultPrefix
	Logger *slog.Logger  // nil logs nothing
}

// What a Config has where it says nothing.
const (
	DefaultLease  = 10 * time.Second
	DefaultPrefix = "cove"
)

// The bounds on one command, and on how many there are at a time.
const (
	dialTimeout = 2 * time.Second
	ioTimeout   = 3 * time.Second
	poolTimeout = 5 * time.Second
	poolSize    = 32
	idleTimeout = 5 * time.Minute
	maxPrefix   = 64
)

// field is what errors call the URL: the setting of the server.
const field = "REDIS_URL"

func (c Config) withDefaults() (Config, error) {
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Lease < 10*time.Millisecond:
		return c, cove.InvalidField("lease", "%s is too short; use at least 10ms", c.Lease)
	case len(c.Prefix) > maxPrefix || strings.ContainsAny(c.Prefix, "{}\x00\n "):
		return c, cove.InvalidField("prefix", "%.80q cannot begin the names of keys; use up to %d letters and digits", c.Prefix, maxPrefix)
	}
	return c, nil
}

// connect returns a client for a URL, and what to call it in messages, which
// never has a password in it. Nothing is sent yet.
func connect(raw string) (redis.UniversalClient, string, error) {
	scheme, rest, found := strings.Cut(raw, "://")
	if !found || rest == "" {
		return nil, "", cove.InvalidField(field, "is not a URL; use redis://host:6379/0")
	}
	switch scheme {
	case "redis", "rediss", "unix":
		o, err := redis.ParseURL(raw)
		if err != nil || o.Addr == "" || scheme != "unix" && !hasPort(o.Addr) {
			return nil, "", cove.InvalidField(field, "cannot be understood; use %s", map[string]string{
				"redis": "redis://host:6379/0", "rediss": "rediss://host:6379/0", "unix": "unix:///run/redis.sock?db=0",
			}[scheme])
		}
		bound(o)
		return redis.NewClient(o), o.Addr, nil
	case "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster":
		return connectMany(scheme, rest)
	}
	return nil, "", cove.InvalidField(field, "%.40q is no scheme of it; use redis, rediss, unix, redis+sentinel or redis+cluster", scheme)
}

// bound sets what a URL does not get to say.
func bound(o *redis.Options) {
	o.MaxRetries = -1 // a command whose answer did not come may have been done
	o.DialerRetries = 1
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = dialTimeout, ioTimeout, ioTimeout
	o.PoolSize, o.MaxActiveConns, o.PoolTimeout, o.ConnMaxIdleTime = poolSize, 0, poolTimeout, idleTimeout
	o.ContextTimeoutEnabled = true
	o.Protocol, o.DisableIdentity = 2, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// connectMany is connect for URLs with several hosts, which are no URLs to Go.
func connectMany(scheme, rest string) (redis.UniversalClient, string, error) {
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	user, hosts := "", authority
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		user, hosts = authority[:i+1], authority[i+1:]
	}
	u, err := url.Parse("redis://" + user + "hosts" + tail)
	if err != nil {
		return nil, "", cove.InvalidField(field, "cannot be understood; use %s://user:password@host:port,host:port", scheme)
	}
	addrs := strings.Split(hosts, ",")
	for _, a := range addrs {
		if !hasPort(a) {
			return nil, "", cove.InvalidField(field, "%.80q is not host:port", a)
		}
	}
	var o redis.Options
	bound(&o)
	o.Username = u.User.Username()
	o.Password, _ = u.User.Password()
	if strings.HasPrefix(scheme, "rediss") {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if strings.HasSuffix(scheme, "cluster") {
		if u.Path != "" && u.Path != "/" {
			return nil, "", cove.InvalidField(field, "a Redis Cluster has no databases; leave out what follows the hosts")
		}
		return cluster(addrs, &o), hosts, nil
	}
	master := strings.TrimPrefix(u.Path, "/")
	if master == "" {
		return nil, "", cove.InvalidField(field, "does not name the master; use redis+sentinel://host:26379/mymaster")
	}
	if db := u.Query().Get("db"); db != "" {
		if o.DB, err = strconv.Atoi(db); err != nil || o.DB < 0 {
			return nil, "", cove.InvalidField(field, "db %.20q is not a number", db)
		}
	}
	return sentinel(master, addrs, u.Query(), &o), hosts, nil
}

func hasPort(addr string) bool {
	i := strings.LastIndex(addr, ":")
	if i <= 0 {
		return false
	}
	_, err := strconv.ParseUint(addr[i+1:], 10, 16)
	return err == nil
}

// cluster follows no redirection by itself, since it would also send again what
// may have been done: see [Store.run].
func cluster(addrs []string, o *redis.Options) redis.UniversalClient {
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: addrs, MaxRedirects: -1, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		MaxRetries: o.MaxRetries, DialerRetries: o.DialerRetries, DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		PoolSize: o.PoolSize, PoolTimeout: o.PoolTimeout, ConnMaxIdleTime: o.ConnMaxIdleTime, ContextTimeoutEnabled: true,
		Protocol: o.Protocol, DisableIdentity: true, MaintNotificationsConfig: o.MaintNotificationsConfig,
	})
}

// sentineled reports whether a URL is of a master that Sentinels watch.
func sentineled(raw string) bool {
	scheme, _, _ := strings.Cut(raw, "://")
	return strings.HasSuffix(scheme, "+sentinel")
}

// sentinel has a name and password of its own for the Sentinels, in the query.
func sentinel(master string, addrs []string, q url.Values, o *redis.Options) redis.UniversalClient {
	return redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: master, SentinelAddrs: addrs, SentinelUsername: q.Get("sentinel_user"), SentinelPassword: q.Get("sentinel_password"),
		Username: o.Username, Password: o.Password, DB: o.DB, TLSConfig: o.TLSConfig,
		MaxRetries: o.MaxRetries, DialerRetries: o.DialerRetries, DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		PoolSize: o.PoolSize, PoolTimeout: o.PoolTimeout, ConnMaxIdleTime: o.ConnMaxIdleTime, ContextTimeoutEnabled: true,
		Protocol: o.Protocol, DisableIdentity: true,
	})
}
