//go:build linux

package docker_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/docker"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// service is the part of a compose file that says what a container may do.
type service struct {
	CapAdd      []string          `yaml:"cap_add"`
	CapDrop     []string          `yaml:"cap_drop"`
	SecurityOpt []string          `yaml:"security_opt"`
	DeviceRules []string          `yaml:"device_cgroup_rules"`
	Cgroup      string            `yaml:"cgroup"`
	Volumes     []string          `yaml:"volumes"`
	Environment map[string]string `yaml:"environment"`
}

func composeFile(t *testing.T) map[string]service {
	t.Helper()
	text, err := os.ReadFile("../../deploy/compose.dind.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]service `yaml:"services"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file.Services
}

// TestComposeFile demands that the two of the compose file speak TLS with each
// other, and that neither is given more than it needs.
func TestComposeFile(t *testing.T) {
	s := composeFile(t)
	env := s["cove"].Environment
	if env["SANDBOX_PROVIDER"] != "docker" || env["DOCKER_TLS_VERIFY"] != "1" || env["DOCKER_CERT_PATH"] != "/certs/client" || env["DOCKER_HOST"] != "tcp://engine:2376" {
		t.Errorf("cove is started with %v", env)
	}
	if s["engine"].Environment["DOCKER_TLS_CERTDIR"] != "/certs" {
		t.Errorf("the engine is started with %v", s["engine"].Environment)
	}
	if c := s["cove"]; len(c.CapAdd) > 0 || !slices.Equal(c.CapDrop, []string{"ALL"}) || !slices.Contains(c.SecurityOpt, "no-new-privileges=true") {
		t.Errorf("cove may do more than it needs: %+v", c)
	}
	for _, v := range s["cove"].Volumes {
		if strings.Contains(v, "docker.sock") {
			t.Errorf("cove has the socket of the machine's own engine: %s", v)
		}
	}
}

// TestConformanceTLS is a part of the suite on an engine in a container, spoken to
// with TLS. The container is given what the compose file gives it.
func TestConformanceTLS(t *testing.T) {
	tier.Full(t, "TestConformance reaches an engine by its socket; TLS is a setting of the same client")
	outer := engineAt(t, "COVE_TEST_DOCKER_HOST")
	if !strings.HasPrefix(outer.Host, "unix://") || os.Getuid() != 0 {
		t.Skip("only root can put an engine into a container of this machine")
	}
	if _, err := os.Stat("/usr/sbin/dockerd"); err != nil {
		t.Skip("dockerd is not installed (docker.io)")
	}
	host, certs := nestedEngine(t, outer.Host)
	open := func(t *testing.T) cove.Provider {
		return openAt(t, docker.Config{Dir: providertest.Dir(t), Host: host, TLSVerify: true, CertPath: certs, Agent: outer.Agent, Image: testImage})
	}
	providertest.Run(t, open, "lifecycle", "exec", "kill", "terminal", "attach")
}

// nestedEngine starts an engine in a container, and returns where it listens and
// the certificates for it.
func nestedEngine(t *testing.T, outer string) (host, certs string) {
	t.Helper()
	ca := newAuthority(t)
	certs = ca.dir(true)
	port := freePort(t)
	group := "cove-dind-" + strings.ToLower(string(cove.NewID()))
	s := composeFile(t)["engine"]
	hc := &container.HostConfig{
		NetworkMode: "host", CapAdd: s.CapAdd, CapDrop: s.CapDrop, CgroupnsMode: container.CgroupnsMode(s.Cgroup),
		Resources: container.Resources{DeviceCgroupRules: s.DeviceRules},
		Mounts: []mount.Mount{
			{Type: mount.TypeBind, Source: "/usr", Target: "/usr", ReadOnly: true},
			{Type: mount.TypeBind, Source: ca.dir(true), Target: "/certs", ReadOnly: true},
			{Type: mount.TypeVolume, Target: "/var/lib/docker"},
		},
	}
	for _, o := range s.SecurityOpt {
		if o == "systempaths=unconfined" {
			hc.MaskedPaths, hc.ReadonlyPaths = []string{}, []string{}
			continue
		}
		hc.SecurityOpt = append(hc.SecurityOpt, o)
	}
	for _, v := range s.Volumes {
		if strings.HasPrefix(v, "/") {
			hc.Binds = append(hc.Binds, v)
		}
	}
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	engine := engineClient(t, outer)
	made, err := engine.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config: &container.Config{
			Image: testImage, User: "0:0", WorkingDir: "/",
			Entrypoint: []string{
				"/usr/sbin/dockerd", "--host", "tcp://" + at, "--tlsverify", "--tlscacert=/certs/ca.pem", "--tlscert=/certs/cert.pem", "--tlskey=/certs/key.pem",
				"--bridge=none", "--iptables=false", "--cgroup-parent=/" + group,
			},
		},
		HostConfig: hc,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := engine.ContainerRemove(ctx, made.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
			t.Error(err)
		}
		dropGroups(t, group)
	})
	if _, err := engine.ContainerStart(t.Context(), made.ID, client.ContainerStartOptions{}); err != nil {
		t.Fatal(err)
	}
	host = "tcp://" + at
	carry(t, engine, host, certs)
	return host, certs
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it listens on one
}

// carry brings the test image from one engine to another, as soon as that is up.
func carry(t *testing.T, from *client.Client, host, certs string) {
	t.Helper()
	to, err := client.New(client.WithHost(host), client.WithTLSClientConfig(filepath.Join(certs, "ca.pem"), filepath.Join(certs, "cert.pem"), filepath.Join(certs, "key.pem")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = to.Close() }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(patience); ; <-tick.C {
		if _, err = to.Ping(t.Context(), client.PingOptions{NegotiateAPIVersion: true}); err == nil {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("the engine in a container does not answer: %v", err)
		}
	}
	image, err := from.ImageSave(t.Context(), []string{testImage})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = image.Close() }()
	loaded, err := to.ImageLoad(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = loaded.Close() }()
	buf := make([]byte, 4096)
	for err == nil {
		_, err = loaded.Read(buf)
	}
}

// dropGroups removes the control groups that an engine in a container made.
func dropGroups(t *testing.T, group string) {
	t.Helper()
	tops, err := filepath.Glob("/sys/fs/cgroup/*/" + group)
	if err != nil {
		t.Fatal(err)
	}
	tops = append(tops, "/sys/fs/cgroup/"+group)
	for _, top := range tops {
		var dirs []string
		_ = filepath.WalkDir(top, func(name string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, name)
			}
			return nil
		})
		for _, dir := range slices.Backward(dirs) {
			for late := time.Now().Add(patience); unix.Rmdir(dir) == unix.EBUSY && time.Now().Before(late); {
			}
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("the control group %s is left", dir)
			}
		}
	}
}
