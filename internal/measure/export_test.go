package measure

import (
	"context"

	"github.com/cove-sandbox/cove"
)

// What tests need beside the exported names.

func ParseStat(text string) (parent int, began string, ok bool) { return parseStat(text) }

func ParseMemory(rollup string) (private, share cove.Bytes, err error) { return parseMemory(rollup) }

func IsNamespace(name string) bool { return isNamespace(name) }

func NamespaceMount(line string) (string, bool) { return namespaceMount(line) }

func Settled(ctx context.Context, base Census) (Census, error) { return settled(ctx, nil, base) }

func GroupDirs(membership, mounts string) []string { return groupDirs(membership, mounts) }

func (s *Stage) Groups() []string { return s.groups }
