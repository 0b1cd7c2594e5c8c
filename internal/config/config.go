package config

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// Config is every setting of Cove, resolved and checked.
//
// To add a setting:
//
//  1. Add one field here with the tags env (its name), key (its place in the
//     file), default and doc. A number has min and max, a word oneof, an
//     address url, a size unit. A default that is not a fixed value is told by
//     shown and filled in by derive. A secret has type [Secret].
//  2. If it can contradict another setting, say so in contradictions.
//  3. Run go test ./internal/config -update, which writes .env.example and
//     docs/configuration.md anew.
//  4. Hand it to the part that needs it, in internal/daemon.
type Config struct {
	Provider      string   `env:"SANDBOX_PROVIDER" alias:"SANDBOX_TYPE" key:"provider" flag:"provider" default:"local" doc:"The provider that makes sandboxes: local, gvisor, docker, microsandbox, e2b, or fake, which only pretends."`
	Fallback      []string `env:"SANDBOX_FALLBACK" key:"fallback" shown:"none" doc:"Providers to try, in this order, when the chosen one is not ready, such as docker,local. Nothing is tried that is not named here."`
	CommandPolicy string   `env:"SANDBOX_COMMAND_POLICY" key:"command_policy" flag:"policy" shown:"none" doc:"The policy that commands must pass: agent-bash, a policy from the file, or the path of a policy file."`
	Home          string   `env:"COVE_HOME" flag:"home" shown:"/var/lib/cove for root, else $XDG_STATE_HOME/cove or ~/.local/state/cove" doc:"The directory of everything that Cove keeps: database, journal, keys, socket."`
	File          string   `env:"COVE_CONFIG" flag:"config" shown:"config.yaml in COVE_HOME, if there is one" doc:"The settings file."`
	NodeID        string   `env:"COVE_NODE_ID" key:"node_id" shown:"the host's name" doc:"The name of this node in answers and in the journal."`
	LogLevel      string   `env:"COVE_LOG_LEVEL" key:"log_level" flag:"log-level" default:"info" oneof:"debug info warn error" doc:"The level of the server's log: debug, info, warn or error."`
	Datasets      string   `env:"COVE_DATASETS" key:"datasets" shown:"none" doc:"The directory with the datasets that runs may read: a folder for each, or a registry.json that names them."`
	ArchiveURL    string   `env:"COVE_ARCHIVE_URL" key:"archive_url" url:"file s3" shown:"the directory archives in COVE_HOME" doc:"Where the workspaces of stopped sessions are kept: file:///a/directory, or s3://bucket/prefix?endpoint=https://host:port&region=name. Without endpoint it is Amazon's S3. path_style=false has the bucket be a part of the host's name."`
	ArchiveKey    Secret   `env:"COVE_ARCHIVE_ACCESS_KEY" key:"archive_access_key" shown:"none" doc:"The access key for that bucket. It must be allowed to list, read, write and delete there."`
	ArchiveSecret Secret   `env:"COVE_ARCHIVE_SECRET_KEY" key:"archive_secret_key" shown:"none" doc:"The secret key that belongs to it."`

	Server       Server       `key:"server" doc:"The server and the on-demand daemon"`
	Client       Client       `key:"client" doc:"Commands and libraries that talk to a server"`
	Exec         Exec         `key:"exec" doc:"Programs and code"`
	Session      Session      `key:"session" doc:"Sessions and the machine's bounds"`
	Workspace    Workspace    `key:"workspace" doc:"Files of a session"`
	Volumes      Volumes      `key:"volumes" doc:"Host paths inside sandboxes, and volumes"`
	Egress       Egress       `key:"egress" doc:"What sandboxes with a network may reach"`
	Pool         Pool         `key:"pool" doc:"Sandboxes made ahead of time"`
	Maintenance  Maintenance  `key:"maintenance" doc:"Background tasks"`
	Prices       Prices       `key:"prices" doc:"What tenants are asked for, in estimates"`
	Gvisor       Gvisor       `key:"gvisor" doc:"Provider gvisor"`
	Docker       Docker       `key:"docker" doc:"Provider docker"`
	Microsandbox Microsandbox `key:"microsandbox" doc:"Provider microsandbox"`
	E2B          E2B          `key:"e2b" doc:"Provider e2b"`
	Redis        Redis        `key:"redis" doc:"Many nodes"`
	Runs         Runs         `key:"runs" doc:"Questions to data"`
	Model        Model        `key:"model" doc:"The model behind /api/chat"`
	Preview      Preview      `key:"preview" doc:"Previews of ports"`
	Faces        Faces        `key:"faces" doc:"Clients of other systems"`
	Telemetry    Telemetry    `key:"telemetry" doc:"Traces"`

	// Flavors, Policies, Imports, Secrets and Regions can be written in the file only.
	Flavors  Flavors  `key:"flavors" shown:"small, medium, large" doc:"Sizes of sandboxes by name, each with cpus, memory and pids. The memory is all that a sandbox has, with a workspace in memory. Your own stand beside small (1 CPU, 1 GB), medium (2, 2) and large (4, 4), or replace them."`
	Policies Policies `key:"policies" shown:"none" doc:"Command policies by name, each with allow, deny and ask (lists of programs), helpers (a list of absolute paths of programs, or directories of programs, that listed programs start themselves), network (none keeps commands from the internet), timeout and max_output. A policy file holds one of them. agent-bash is built in."`
	Imports  Imports  `key:"imports" shown:"none" doc:"Changes to the list of modules that Python code should not import (see docs/policy.md): block (a list) adds to it, allow takes from it. SANDBOX_BLOCK_DANGEROUS_IMPORTS says what the list is for."`
	Secrets  Secrets  `key:"secrets" shown:"none" doc:"Credentials by name that requests of sandboxes get on their way out, each with hosts (as in an allow-list), header, and one of value, value_env (a variable) and value_file. They are sent over https only; plain: true lets one go out over http, too, but never to port 443. A session names those it wants; the sandbox never sees them."`

	// Regions are other clusters.
	Regions Regions `key:"regions" shown:"none" doc:"Other clusters by name, which have the same COVE_CLUSTER_SECRET, each with nodes (addresses, as COVE_NODE_ADDR says there), tenants (all that they do is done there) and metadata (a session that has all of it is opened there). COVE_REGION says which one this is."`

	origins map[string]Origin
	machine cove.Bytes // its memory; 0 where it is not known
}

// Server is how cove serve and the on-demand daemon listen and end.
type Server struct {
	Addr        string        `env:"COVE_ADDR" key:"addr" flag:"addr" default:"127.0.0.1:8000" doc:"The address and port that cove serve listens on."`
	PublicURL   string        `env:"COVE_PUBLIC_URL" key:"public_url" url:"http https" shown:"http:// or https:// and COVE_ADDR" doc:"Where browsers reach cove serve, for the links that it makes."`
	TLSCert     string        `env:"COVE_TLS_CERT" key:"tls_cert" shown:"none: the server speaks plain HTTP" doc:"The file with the server's certificate and those that vouch for it, in PEM. Set, the address speaks HTTPS only. A file that changes is read again."`
	TLSKey      string        `env:"COVE_TLS_KEY" key:"tls_key" shown:"none" doc:"The file with the private key of that certificate, in PEM."`
	Conns       int           `env:"COVE_CONNECTIONS" key:"connections" default:"8192" min:"1" max:"1000000" doc:"Connections to the address at once. One more is closed as soon as it comes."`
	RemoteConns int           `env:"COVE_CONNECTIONS_PER_REMOTE" key:"connections_per_remote" default:"1024" min:"1" max:"1000000" doc:"Those of one remote address. Behind a proxy everybody has the proxy's, so set it as high as the other."`
	Console     string        `env:"COVE_CONSOLE" key:"console" shown:"the one that make build puts into cove" doc:"The path of another web console: an archive that scripts/web.sh makes."`
	DaemonIdle  time.Duration `env:"COVE_DAEMON_IDLE" key:"daemon_idle" default:"600" min:"1" doc:"Seconds after which a daemon that was started on demand ends, when it has no session and nobody talks to it."`
}

// Client is how commands reach a server.
type Client struct {
	URL        string `env:"COVE_URL" key:"url" flag:"url" url:"http https unix" shown:"none" doc:"The server that commands talk to, instead of this machine."`
	APIKey     Secret `env:"COVE_API_KEY" key:"api_key" shown:"none" doc:"The key that commands show to that server."`
	Mode       string `env:"SANDBOX_MODE" key:"mode" default:"local" oneof:"local remote" doc:"Whether clients run sandboxes on this machine (local) or on the server at SANDBOX_URL (remote)."`
	SandboxURL string `env:"SANDBOX_URL" key:"sandbox_url" url:"http https unix" default:"http://localhost:8000" doc:"The server that clients use with SANDBOX_MODE=remote."`
}

// Exec bounds programs and says what is kept of them.
type Exec struct {
	Timeout          time.Duration `env:"SANDBOX_TIMEOUT_SEC" alias:"MSB_EXECUTION_TIMEOUT" key:"timeout" default:"33" min:"0.001" max:"86400" doc:"Seconds after which a program is killed that named no timeout of its own."`
	MaxOutput        cove.Bytes    `env:"SANDBOX_MAX_OUTPUT_KB" key:"max_output" unit:"k" default:"20" min:"1" max:"1048576" doc:"Kilobytes of each stream in an answer. What is cut is kept beside the session."`
	DangerousImports string        `env:"SANDBOX_BLOCK_DANGEROUS_IMPORTS" key:"block_dangerous_imports" oneof:"true warn false" shown:"true for run_python_code, elsewhere false" doc:"Whether Python code that imports os, subprocess and the like is refused: true, warn or false."`
	StoreCode        string        `env:"SANDBOX_STORE_CODE" key:"store_code" default:"on_error" oneof:"always on_error never" doc:"When code and its result are written to artifacts/executions in COVE_HOME: always, on_error or never."`
	StoreDays        float64       `env:"COVE_STORE_CODE_DAYS" key:"store_code_days" default:"7" min:"0.01" max:"36500" doc:"Days after which what was written there is removed."`
	StoreMax         cove.Bytes    `env:"COVE_STORE_CODE_MB" key:"store_code_size" unit:"m" default:"256" min:"1" max:"1048576" doc:"Megabytes that all of it may take. The oldest goes first."`
}

// Session bounds sessions, one by one and together.
type Session struct {
	IdleTimeout    time.Duration `env:"MSB_SESSION_TIMEOUT" key:"idle_timeout" default:"1800" min:"1" max:"31622400" doc:"Seconds without activity after which a session is stopped, or what its on_end says."`
	PausedDays     float64       `env:"COVE_PAUSED_DAYS" key:"paused_days" default:"30" min:"0.001" max:"3660" doc:"Days that a stopped or paused session is kept with its files, unless its on_end is close. Its files count in what the tenant may keep on the disk."`
	StartTimeout   time.Duration `env:"MSB_SANDBOX_START_TIMEOUT" key:"start_timeout" default:"180" min:"0.001" max:"86400" doc:"Seconds that making a sandbox may take."`
	Flavor         string        `env:"MSB_DEFAULT_FLAVOR" key:"flavor" default:"small" doc:"The flavor of sessions that name none."`
	Max            int           `env:"MSB_MAX_SESSIONS" key:"max" min:"1" max:"1000000" shown:"as many as memory allows" doc:"Live sessions at once, of all tenants."`
	MaxTotalMemory cove.Bytes    `env:"MSB_MAX_TOTAL_MEMORY_MB" key:"max_total_memory" unit:"m" min:"16" max:"67108864" shown:"80 % of the machine" doc:"Megabytes that all live sessions may use together. A control group bounds all sandboxes to an eighth more, and to nine tenths of the machine."`
	TenantDisk     cove.Bytes    `env:"COVE_TENANT_DISK_MB" key:"tenant_disk" unit:"m" default:"10240" min:"0" max:"67108864" doc:"Megabytes that a tenant without a bound of its own may keep on the disk: snapshots, archives of stopped sessions, output, artifacts, and workspaces on disk. 0 is no bound."`
	DiskReserve    cove.Bytes    `env:"COVE_DISK_RESERVE_MB" key:"disk_reserve" unit:"m" default:"512" min:"0" max:"67108864" doc:"Megabytes of the file system of COVE_HOME that are for the journal and the database. Where fewer are free, what tenants would write there is refused."`
	LRUEviction    bool          `env:"MSB_ENABLE_LRU_EVICTION" key:"lru_eviction" default:"true" doc:"Whether a full machine stops the session that was idle longest, keeping its files, to make room. Otherwise new sessions are refused."`
}

// Workspace bounds the files of a session.
type Workspace struct {
	MaxFileSize cove.Bytes `env:"MAX_FILE_SIZE_MB" key:"max_file_size" unit:"m" default:"100" min:"1" max:"67108864" doc:"Megabytes of one uploaded file; when set, also of a file that a program writes."`
	Files       int64      `env:"MAX_TOTAL_FILES" key:"files" default:"100000" min:"1" max:"4294967296" doc:"Files in a workspace."`
	Size        cove.Bytes `env:"MAX_WORKSPACE_SIZE_MB" key:"size" unit:"m" default:"500" min:"1" max:"67108864" doc:"Megabytes in a workspace. One in memory is part of its session's memory, and has at most half of it unless the request says its size."`
}

// Volumes are host paths that sandboxes may see, and what bounds the volumes of tenants.
type Volumes struct {
	Allowed []string      `env:"COVE_VOLUMES" key:"allowed" shown:"none" doc:"Host paths that may be mounted, with all that is below them: read-only, or for writing, too, with :rw at the end. What holds COVE_HOME, or lies in it, is never mounted."`
	Shared  []cove.Volume `env:"MSB_SHARED_VOLUME_PATH" key:"shared" default:"[]" doc:"Volumes that every sandbox gets, as [\"host:sandbox\", \"host:sandbox:ro\"] or with commas between. They are writable unless ro stands at the end."`
	Size    cove.Bytes    `env:"COVE_VOLUME_MB" key:"size" unit:"m" default:"1024" min:"1" max:"67108864" doc:"Megabytes in a volume that a tenant makes by name. The bound is watched: sessions that write more are ended. Volumes that are there keep theirs."`
	Files   int64         `env:"COVE_VOLUME_FILES" key:"files" default:"100000" min:"1" max:"10000000" doc:"Files and folders in such a volume."`
	Most    int           `env:"COVE_MAX_VOLUMES" key:"most" default:"100" min:"1" max:"100000" doc:"Such volumes of one tenant."`
}

// Egress is what holds for the way out of every sandbox that has one.
type Egress struct {
	Private     []string      `env:"COVE_EGRESS_PRIVATE" key:"private" shown:"none" doc:"Ranges of private addresses that sandboxes may reach, such as 10.1.0.0/16, if their network allows the name. Everything else that is not public is refused."`
	Connections int           `env:"COVE_EGRESS_CONNECTIONS" key:"connections" default:"256" min:"1" max:"65536" doc:"Connections of one sandbox at once."`
	PerSecond   int           `env:"COVE_EGRESS_PER_SECOND" key:"per_second" default:"200" min:"1" max:"65536" doc:"New connections of one sandbox in a second."`
	Rate        cove.Bytes    `env:"COVE_EGRESS_RATE_KB" key:"rate" unit:"k" min:"1" max:"1073741824" shown:"no bound" doc:"Kilobytes that one sandbox may send and receive in a second."`
	Idle        time.Duration `env:"COVE_EGRESS_IDLE" key:"idle" default:"300" min:"1" max:"86400" doc:"Seconds without a byte after which a connection is ended."`
}

// Pool is how many sandboxes wait ready-made.
type Pool struct {
	Size int    `env:"POOL_SIZE" key:"size" default:"4" min:"0" max:"10000" doc:"Sandboxes of each kind that are kept ready."`
	Max  int    `env:"MAX_POOL_SIZE" key:"max_size" default:"100" min:"0" max:"10000" doc:"Ready sandboxes of all kinds together."`
	Warm string `env:"COVE_WARM" key:"warm" default:"auto" oneof:"auto off" doc:"Whether interpreters are started in ready sandboxes, so that the first code of a session runs at once: auto starts those that sessions of the same kind used lately."`
}

// Maintenance is how often the background tasks look.
type Maintenance struct {
	Cleanup time.Duration `env:"MSB_CLEANUP_INTERVAL" key:"cleanup_interval" default:"60" min:"0.01" max:"86400" doc:"Seconds between two looks for expired sessions."`
	Orphans time.Duration `env:"MSB_ORPHAN_CLEANUP_INTERVAL" key:"orphan_cleanup_interval" default:"600" min:"0.01" max:"86400" doc:"Seconds between two looks for sandboxes that belong to no session."`
}

// Gvisor is the provider of that name.
type Gvisor struct {
	Runsc    string `env:"COVE_GVISOR_RUNSC" key:"runsc" shown:"the one in this program" doc:"The path of another runsc than the one in this program."`
	Platform string `env:"COVE_GVISOR_PLATFORM" key:"platform" oneof:"systrap kvm ptrace" default:"systrap" doc:"How gVisor catches system calls: systrap works everywhere, kvm needs /dev/kvm."`
}

// Docker is the provider of that name.
type Docker struct {
	Host      string     `env:"DOCKER_HOST" key:"host" url:"unix tcp http https" shown:"unix:///var/run/docker.sock" doc:"Where the Docker engine listens."`
	TLSVerify bool       `env:"DOCKER_TLS_VERIFY" key:"tls_verify" default:"false" doc:"Whether the engine must show a certificate that ca.pem in DOCKER_CERT_PATH vouches for."`
	CertPath  string     `env:"DOCKER_CERT_PATH" key:"cert_path" shown:"none" doc:"The directory with ca.pem, cert.pem and key.pem."`
	Image     string     `env:"DOCKER_IMAGE" key:"image" default:"cove-sandbox:latest" doc:"The image of sandboxes."`
	Runtime   string     `env:"DOCKER_RUNTIME" key:"runtime" shown:"the engine's own" doc:"The runtime of containers, by the engine's name for it, such as runsc or kata."`
	Network   bool       `env:"DOCKER_NETWORK_ENABLED" key:"network_enabled" default:"false" doc:"Whether sandboxes may ask for network mode open, on the engine's default network, where nothing bounds what they reach."`
	CPULimit  float64    `env:"DOCKER_CPU_LIMIT" key:"cpu_limit" min:"0.01" max:"1024" shown:"the flavor's" doc:"CPUs of a sandbox, whatever its flavor says, unless the request or its key says it."`
	Memory    cove.Bytes `env:"DOCKER_MEMORY_LIMIT" key:"memory_limit" unit:"b" min:"4194304" max:"70368744177664" shown:"the flavor's" doc:"Memory of a sandbox, such as 512m, whatever its flavor says, unless the request or its key says it."`
}

// Microsandbox is the provider of that name.
type Microsandbox struct {
	ServerURL string     `env:"MSB_SERVER_URL" key:"server_url" url:"http https" default:"http://127.0.0.1:5555" doc:"The microsandbox server."`
	APIKey    Secret     `env:"MSB_API_KEY" key:"api_key" shown:"none" doc:"The key for that server."`
	Namespace string     `env:"MSB_NAMESPACE" key:"namespace" default:"default" doc:"The namespace of its sandboxes."`
	CPUs      float64    `env:"MSB_CPUS" key:"cpus" default:"1" min:"0.01" max:"1024" doc:"CPUs of its sandboxes."`
	Memory    cove.Bytes `env:"MSB_MEMORY_MB" key:"memory" unit:"m" default:"512" min:"4" max:"67108864" doc:"Megabytes of its sandboxes."`
	Transport string     `env:"MSB_TRANSPORT" key:"transport" oneof:"rpc cli" shown:"whichever answers" doc:"How to reach it: rpc (the server) or cli (the msb program)."`
	Program   string     `env:"MSB_PATH" key:"path" shown:"msb in PATH" doc:"The path of the msb program."`
	Image     string     `env:"MSB_IMAGE" key:"image" shown:"microsandbox/python" doc:"The image of its sandboxes."`
}

// E2B is the provider of that name.
type E2B struct {
	APIKey     Secret        `env:"E2B_API_KEY" key:"api_key" shown:"none" doc:"The key for E2B."`
	APIURL     string        `env:"E2B_API_URL" key:"api_url" url:"http https" shown:"api. below E2B_DOMAIN" doc:"The address of its API."`
	SandboxURL string        `env:"E2B_SANDBOX_URL" key:"sandbox_url" url:"http https" shown:"below E2B_DOMAIN" doc:"The address at which all its sandboxes answer, where they have no names of their own."`
	Domain     string        `env:"E2B_DOMAIN" key:"domain" default:"e2b.app" doc:"The domain of its sandboxes, which names the region."`
	Template   string        `env:"E2B_TEMPLATE" key:"template" default:"base" doc:"What its sandboxes are made from."`
	Timeout    time.Duration `env:"E2B_TIMEOUT_SEC" key:"timeout" default:"3600" min:"1" max:"86400" doc:"Seconds that a sandbox of a server that died lives on. It is renewed while somebody holds it."`
	Most       int           `env:"E2B_MAX_SANDBOXES" key:"max_sandboxes" min:"1" max:"1000000" shown:"the account's" doc:"Sandboxes at once."`
	CPUHour    float64       `env:"E2B_PRICE_CPU_HOUR" key:"price_cpu_hour" shown:"0" min:"0" max:"1000000" doc:"What an hour of one CPU costs, in US dollars, for the estimates in answers."`
	MemoryHour float64       `env:"E2B_PRICE_MEMORY_GB_HOUR" key:"price_memory_gb_hour" shown:"0" min:"0" max:"1000000" doc:"What an hour of one gigabyte of memory costs, in US dollars."`
}

// Redis is the store that many nodes share.
type Redis struct {
	URL  string `env:"REDIS_URL" key:"url" url:"redis rediss unix redis+sentinel redis+cluster" shown:"none" doc:"The Redis that nodes share: redis://host:6379, redis+sentinel://host1:26379,host2:26379/name or redis+cluster://host1:7000,host2:7001. Set, cove serve is one node of many."`
	Host string `env:"REDIS_HOST" key:"host" shown:"none" doc:"The same without a URL: the host."`
	Port int    `env:"REDIS_PORT" key:"port" min:"1" max:"65535" shown:"6379" doc:"The port on REDIS_HOST."`

	Secret   Secret        `env:"COVE_CLUSTER_SECRET" key:"secret" shown:"none" doc:"What all nodes of a cluster know and nobody else: 32 characters or more, as openssl rand -hex 32 makes them. Nodes know each other by it, and links are signed with it. REDIS_URL needs it, and it needs REDIS_URL."`
	NodeAddr string        `env:"COVE_NODE_ADDR" key:"node_addr" default:"127.0.0.1:0" doc:"The address and port where other nodes reach this one, over TLS that only nodes can speak. Set an address that they can reach."`
	Lease    time.Duration `env:"COVE_NODE_LEASE_SEC" key:"node_lease" default:"10" min:"1" max:"3600" doc:"Seconds after which a node that is not heard of is gone, and its sessions are lost. The same on all nodes."`
	Grace    time.Duration `env:"COVE_NODE_GRACE_SEC" key:"node_grace" default:"60" min:"0" max:"86400" doc:"Seconds that a node which was stopped in order may be away before it is gone: the time for a restart. 0: it is gone at once."`
	Region   string        `env:"COVE_REGION" key:"region" shown:"none" doc:"The name of this cluster among others."`
}

// Runs is how questions to data are answered, and how long they are remembered.
type Runs struct {
	DuckDB    string  `env:"COVE_DUCKDB" key:"duckdb" shown:"the one that make build puts into cove" doc:"The path of another executable cove-duckdb, which answers SQL in sandboxes."`
	KeepHours float64 `env:"COVE_RUNS_KEEP_HOURS" key:"keep_hours" default:"24" min:"0.01" max:"876000" doc:"Hours after which a run and its answer are forgotten."`
	Most      int     `env:"COVE_RUNS_MOST" key:"most" default:"1000" min:"1" max:"1000000" doc:"Runs of one tenant that are remembered. The oldest go first."`
	Network   string  `env:"COVE_RUNS_NETWORK" key:"network" default:"none" oneof:"none open" doc:"none: what answers questions to data has no network, and a provider that cannot close it is refused. open: such a provider, which is microsandbox by its server, may answer, and code that gets past policy can send data away."`
	ChatDays  float64 `env:"COVE_CHAT_KEEP_DAYS" key:"chat_keep_days" default:"30" min:"0.01" max:"36500" doc:"Days after which a message of a chat is forgotten."`
}

// Model is the OpenAI-compatible model that answers questions.
type Model struct {
	URL     string        `env:"COVE_MODEL_URL" key:"url" url:"http https" shown:"none" doc:"The base URL of an OpenAI-compatible API, such as http://localhost:11434/v1: /chat/completions is put after it. Questions, and the results that answer them, are sent there."`
	Key     Secret        `env:"COVE_MODEL_KEY" key:"key" shown:"none" doc:"The key for that API, if it wants one."`
	Name    string        `env:"COVE_MODEL" key:"name" shown:"none" doc:"The name of the model. It must know tools."`
	Rounds  int           `env:"COVE_MODEL_ROUNDS" key:"rounds" default:"8" min:"1" max:"64" doc:"How often the model is asked for one message: once more for each time that it uses tools."`
	Timeout time.Duration `env:"COVE_MODEL_TIMEOUT_SEC" key:"timeout" default:"60" min:"1" max:"600" doc:"Seconds that the model has for one answer."`
}

// Preview is where ports of sandboxes are shown, apart from the console.
type Preview struct {
	Domain string `env:"COVE_PREVIEW_DOMAIN" key:"domain" shown:"none" doc:"The domain below which every port of every sandbox has a host of its own, answered at COVE_ADDR: *.domain must lead there. Use one that nothing else is below."`
	Addr   string `env:"COVE_PREVIEW_ADDR" key:"addr" shown:"none" doc:"An address and port of its own for previews, where there is no such domain. Their hosts are then below localhost, which browsers find on their own machine."`
}

// Faces are what clients of other systems find.
type Faces struct {
	E2BDomain  string     `env:"COVE_E2B_DOMAIN" key:"e2b_domain" flag:"e2b-domain" shown:"none" doc:"The domain that E2B's SDKs are given as E2B_DOMAIN, with a port unless it is 443. Every sandbox has hosts below it, so *.domain must lead to this server, over HTTPS. Use one that nothing else is below."`
	E2BAddr    string     `env:"COVE_E2B_ADDR" key:"e2b_addr" shown:"none: the domain is answered at COVE_ADDR" doc:"An address and port of its own for that domain, which speaks HTTPS."`
	E2BNetwork string     `env:"COVE_E2B_NETWORK" key:"e2b_network" default:"open" oneof:"open allow none" doc:"The most network that calls of E2B clients give to a sandbox, whatever the client, its key or its SDK asks for: none, allow (hosts that are named) or open, which is then also what a client gets that says nothing."`
	MSBAddr    string     `env:"COVE_MSB_ADDR" key:"msb_addr" shown:"none" doc:"A second address for old microsandbox clients, such as 127.0.0.1:5555. They are answered at COVE_ADDR, too."`
	MCPBudget  cove.Bytes `env:"COVE_MCP_BUDGET_KB" key:"mcp_budget" unit:"k" default:"20" min:"1" max:"1024" doc:"Kilobytes of text that one tool of the MCP server answers with at most."`
}

// Telemetry is where traces go.
type Telemetry struct {
	Endpoint string `env:"OTEL_EXPORTER_OTLP_ENDPOINT" key:"otlp_endpoint" url:"http https" shown:"none" doc:"The OpenTelemetry collector that gets traces, by OTLP over HTTP, such as http://127.0.0.1:4318."`
}
