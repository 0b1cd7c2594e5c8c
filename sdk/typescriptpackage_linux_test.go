package sdk_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// TestTypeScriptLocal installs the npm package and the one that has cove inside into a
// clean folder, as a user does, and runs the lines of the pages there, in local mode:
// nothing else is installed or started.
func TestTypeScriptLocal(t *testing.T) {
	tier.Full(t, "TestReadme/JavaScript installs the package and starts cove")
	needProvider(t, "local")
	tree := providertest.Needs(t, "sdks", "COVE_TEST_TYPESCRIPT")
	dir, bin := shortDir(t), filepath.Join(tree, "bin")
	node := filepath.Join(bin, "node")
	tools := append(plain(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+dir)
	carrier := strings.TrimSpace(run(t, tools, "typescript", node, "platform.mjs", program.Cove(t), dir))
	install := []string{"npm", "install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private": true, "type": "module"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, tools, dir, append(install, filepath.Join(tree, "cove-sandbox.tgz"))...)

	home := filepath.Join(dir, "home")
	env := []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + dir, "COVE_HOME=" + home, "COVE_DAEMON_IDLE=60", "POOL_SIZE=0", "SANDBOX_PROVIDER=local", "LANG=C.UTF-8"}
	alone := `import { Sandbox } from "cove-sandbox"; await Sandbox.create().catch((err) => console.log(err.remedy))`
	if got := run(t, env, dir, node, "--input-type=module", "--eval", alone); !strings.Contains(got, "the package cove-sandbox-linux-") {
		t.Errorf("without the executable it says %q", got)
	}

	run(t, tools, dir, append(install, filepath.Join(dir, carrier))...)
	t.Cleanup(func() { endDaemon(t, home) })
	for _, page := range []string{"../README.md", "typescript/README.md", "../docs/typescript.md"} {
		for i, block := range blocks(t, page, "js") {
			if err := os.WriteFile(filepath.Join(dir, "block.js"), []byte(block.code), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := run(t, env, dir, node, "block.js"); block.output != "" && got != block.output {
				t.Errorf("%s, block %d printed\n%s\nand not\n%s", page, i+1, got, block.output)
			}
		}
	}
}

// TestTypeScriptCarrier builds no package with what is no executable for it.
func TestTypeScriptCarrier(t *testing.T) {
	tree := providertest.Needs(t, "sdks", "COVE_TEST_TYPESCRIPT")
	script := filepath.Join(t.TempDir(), "cove")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"+strings.Repeat("# long\n", 20)), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(tree, "bin", "node"), "typescript/platform.mjs", script, t.TempDir())
	if said, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(said), "is no executable for Linux on 64 bits") {
		t.Errorf("%v, and it says %q", err, said)
	}
}
