package msbapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

// base is the template that is always there.
const base = "base"

// template returns the template of an image, for a tenant: those of the original have
// ours in their place, and all others are known by the name of a template.
func (s *server) template(tenant, image string) (string, error) {
	ready := cove.VisibleTemplates(tenant, s.Templates())
	name := strings.TrimPrefix(image, "docker.io/")
	short, _, _ := strings.Cut(name, ":")
	switch short {
	case "microsandbox/python":
		return chosen(ready, "python"), nil
	case "microsandbox/node":
		return chosen(ready, "node"), nil
	}
	if image == base || slices.Contains(ready, image) {
		return image, nil
	}
	all := append([]string{"microsandbox/python", "microsandbox/node", base}, ready...)
	return "", wrong(fmt.Sprintf("there is no image %.100q here; use one of %s", image, strings.Join(all, ", ")))
}

// chosen is a template where it is ready, or the base, which has the host's own
// interpreters.
func chosen(ready []string, name string) string {
	if slices.Contains(ready, name) {
		return name
	}
	return base
}
