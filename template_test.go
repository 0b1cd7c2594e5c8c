package cove_test

import (
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

func TestTemplateNames(t *testing.T) {
	for _, name := range []string{"a", "7", "base", "a.b_c-d", strings.Repeat("x", 63)} {
		if err := cove.ValidTemplateName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "A", "aB", "-a", "a-", ".", "a.", "a b", "a/b", "a:b", "ä", "a\n", strings.Repeat("x", 64)} {
		if err := cove.ValidTemplateName(name); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%q gives %v", name, err)
		}
	}
}
