package clustertest_test

import (
	"testing"

	"github.com/cove-sandbox/cove/internal/testkit/program"
)

func TestMain(m *testing.M) { program.Main(m) }
