package rootfs_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/rootfs"
)

// The image and the template are one environment.
func TestSandboxImage(t *testing.T) {
	text, err := os.ReadFile("../../images/sandbox/Dockerfile")
	must(t, err)
	list := regexp.MustCompile(`(?s)--no-install-recommends \\\n(.*?)\n && `).FindStringSubmatch(string(text))
	if list == nil {
		t.Fatal("the Dockerfile installs nothing")
	}
	image := strings.Fields(strings.ReplaceAll(list[1], `\`, ""))
	wanted, ok := rootfs.Packages("sandbox")
	if !ok {
		t.Fatal("there is no template sandbox")
	}
	var template []string
	for _, w := range wanted {
		template = append(template, w.Name)
	}
	slices.Sort(image)
	slices.Sort(template)
	if diff := cmp.Diff(template, image); diff != "" {
		t.Error(diff)
	}
	for _, line := range []string{"--uid 1000 ", "USER sandbox", "WORKDIR /workspace"} {
		if !strings.Contains(string(text), line) {
			t.Errorf("the Dockerfile lacks %q", line)
		}
	}
}
