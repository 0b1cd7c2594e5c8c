package memory_test

import (
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/store/memory"
	"github.com/cove-sandbox/cove/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) cove.Store { return memory.New() })
}
