package docker

import (
	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
)

// Config says which engine makes the sandboxes, and of what.
type Config struct {
	// Dir is a directory for this provider alone. Sandboxes belong to it: only one
	// provider may be open on it at a time.
	Dir string
	// Host is where the engine listens: unix, tcp, http or https; "" is Docker's
	// own socket.
	Host string
	// TLSVerify demands TLS, with the certificates in CertPath.
	TLSVerify bool
	// CertPath is a directory with ca.pem, cert.pem and key.pem. Where it is set, an
	// engine that is not on a socket is spoken to with TLS, and must show a
	// certificate that ca.pem vouches for.
	CertPath string
	// Image is the template base; "" is DefaultImage.
	Image string
	// Runtime is the engine's name for what runs containers; "" is its own choice.
	Runtime string
	// Network offers network open: the engine's own bridge, which nobody watches.
	Network bool
	// Around is the name of the control group around those of all providers, and Together
	// the memory that all sandboxes in it have together; 0 is no bound.
	Around   string
	Together cove.Bytes
	// Egress says what the ways out of sandboxes have in common.
	Egress egress.Settings
	// Agent is the path of a static executable that is the agent; "" takes what this
	// build has.
	Agent string
}

// Base is the template that is the configured image.
const Base = "base"

// What is taken where nothing else is said.
const (
	DefaultHost  = "unix:///var/run/docker.sock"
	DefaultImage = "cove-sandbox:latest"
)

// Names that others see.
const (
	name           = "docker"
	templateImages = "cove-template" // the repository; a tag is a template
	prefix         = "cove-"
	sparePrefix    = prefix + "spare-"
	helperPrefix   = prefix + "helper-"
	agentPrefix    = prefix + "agent-" // of volumes
	labelOwner     = "dev.cove.owner"
	labelAgent     = "dev.cove.agent"
	hostname       = "sandbox"
	user           = "1000:1000"
	userID         = 1000
	agentDir       = "/cove"
	tempDir        = "/tmp"
	agentName      = "cove-agent" // by which a whole cove knows what it was started for
	agentPath      = agentDir + "/" + agentName
)
