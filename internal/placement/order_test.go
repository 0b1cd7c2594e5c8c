package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/placement"
)

// node is ready, with the provider local as its default and 10 GiB.
func node(id string, change ...func(*cove.Node)) cove.Node {
	n := cove.Node{
		ID: id, State: cove.NodeReady, Templates: []string{"base"},
		Providers: []cove.NodeProvider{{Name: "local", Boundary: cove.BoundaryNamespaces, Default: true}},
		Capacity:  cove.Bounds{Sessions: 10, Memory: 10 * cove.GiB},
	}
	for _, c := range change {
		c(&n)
	}
	return n
}

func uses(memory cove.Bytes, sessions int) func(*cove.Node) {
	return func(n *cove.Node) { n.Used = cove.Bounds{Memory: memory, Sessions: sessions} }
}

func is(s cove.NodeState) func(*cove.Node) { return func(n *cove.Node) { n.State = s } }

func spares(n int) func(*cove.Node) { return func(o *cove.Node) { o.Pool = n } }

func unbound(n *cove.Node) { n.Capacity = cove.Bounds{} }

func also(name string, b cove.Boundary) func(*cove.Node) {
	return func(n *cove.Node) { n.Providers = append(n.Providers, cove.NodeProvider{Name: name, Boundary: b}) }
}

// defaultDown is how a node looks whose default provider is not ready.
func defaultDown(n *cove.Node) { n.Providers = nil }

func has(template string) func(*cove.Node) {
	return func(n *cove.Node) { n.Templates = append(n.Templates, template) }
}

// chance returns these numbers, one after the other.
func chance(numbers ...int) func(int) int {
	return func(int) int {
		if len(numbers) == 0 {
			return 0
		}
		i := numbers[0]
		numbers = numbers[1:]
		return i
	}
}

func names(nodes []cove.Node) string {
	var ids []string
	for _, n := range nodes {
		ids = append(ids, n.ID)
	}
	return strings.Join(ids, " ")
}

func TestOrder(t *testing.T) {
	gib := placement.Want{Memory: cove.GiB}
	for name, tt := range map[string]struct {
		nodes []cove.Node
		want  placement.Want
		pick  []int
		order string
	}{
		"one":                {[]cove.Node{node("a")}, gib, nil, "a"},
		"better of two":      {[]cove.Node{node("a", uses(cove.GiB, 1)), node("b", uses(2*cove.GiB, 1)), node("c")}, gib, []int{1, 0}, "a c b"},
		"the other of two":   {[]cove.Node{node("a", uses(cove.GiB, 1)), node("b", uses(2*cove.GiB, 1)), node("c")}, gib, []int{1, 1}, "c a b"},
		"never itself":       {[]cove.Node{node("a"), node("b", uses(cove.GiB, 1))}, gib, []int{1, 0}, "a b"},
		"then sessions":      {[]cove.Node{node("a", uses(0, 2)), node("b", uses(0, 1))}, gib, nil, "b a"},
		"then spares":        {[]cove.Node{node("a"), node("b", spares(2)), node("c", spares(1))}, gib, []int{0, 1}, "c b a"},
		"full ones last":     {[]cove.Node{node("a", uses(10*cove.GiB, 1)), node("b", uses(cove.GiB, 10)), node("c", uses(9*cove.GiB, 1))}, gib, nil, "c b a"},
		"too small":          {[]cove.Node{node("a"), node("b", func(n *cove.Node) { n.Capacity.Memory = cove.MiB })}, gib, nil, "a"},
		"no bounds":          {[]cove.Node{node("a", unbound, uses(cove.GiB, 1)), node("b", unbound)}, gib, nil, "b a"},
		"only ready":         {[]cove.Node{node("a", is(cove.NodeCordoned)), node("b", is(cove.NodeAway)), node("c", is(cove.NodeGone)), node("d")}, gib, nil, "d"},
		"named provider":     {[]cove.Node{node("a"), node("b", also("gvisor", cove.BoundaryUserKernel))}, placement.Want{Provider: "gvisor"}, nil, "b"},
		"named and strong":   {[]cove.Node{node("a", also("x", cove.BoundaryNone)), node("b", also("x", cove.BoundaryMicroVM))}, placement.Want{Provider: "x", Isolation: cove.BoundaryUserKernel}, nil, "b"},
		"template":           {[]cove.Node{node("a"), node("b", has("science"))}, placement.Want{Template: "science"}, nil, "b"},
		"base is everywhere": {[]cove.Node{node("a", func(n *cove.Node) { n.Templates = nil })}, placement.Want{Template: "base"}, nil, "a"},
		"pinned":             {[]cove.Node{node("a"), node("b", uses(10*cove.GiB, 1))}, placement.Want{Pin: "b", Memory: cove.GiB}, nil, "b"},
		"fallback last":      {[]cove.Node{node("a", defaultDown, also("docker", cove.BoundaryNamespaces)), node("b", uses(10*cove.GiB, 1))}, placement.Want{Fallback: []string{"docker"}, Memory: cove.GiB}, nil, "b a"},
		"only fallback":      {[]cove.Node{node("a", defaultDown, also("docker", cove.BoundaryNamespaces)), node("b", defaultDown, also("docker", cove.BoundaryNamespaces))}, placement.Want{Fallback: []string{"docker"}}, []int{1, 0}, "a b"},
		"twice the same":     {[]cove.Node{node("b"), node("a"), node("b", uses(cove.GiB, 1))}, gib, nil, "a b"},
		"a strange number":   {[]cove.Node{node("a"), node("b")}, gib, []int{-5, 99}, "a b"},
		"over its bound":     {[]cove.Node{node("a", uses(99*cove.GiB, 99)), node("b", uses(-cove.GiB, -1))}, gib, nil, "b a"},
	} {
		got, err := placement.Order(tt.nodes, tt.want, chance(tt.pick...))
		if err != nil || names(got) != tt.order {
			t.Errorf("%s: the order is %q, %v; want %q", name, names(got), err, tt.order)
		}
	}
}

func TestWhatIsMissing(t *testing.T) {
	two := []cove.Node{node("a"), node("b", also("gvisor", cove.BoundaryUserKernel), has("science"))}
	for name, tt := range map[string]struct {
		nodes []cove.Node
		want  placement.Want
		code  cove.Code
		says  []string
	}{
		"nobody":             {nil, placement.Want{}, cove.Unavailable, []string{"none is ready"}},
		"none is ready":      {[]cove.Node{node("a", is(cove.NodeCordoned))}, placement.Want{}, cove.Unavailable, []string{"of 1 none is ready"}},
		"provider":           {two, placement.Want{Provider: "e2b"}, cove.Unsupported, []string{"provider:", `"e2b"`, `"a" has local (namespaces)`, `"b" has local (namespaces) and gvisor (user_kernel)`}},
		"default too weak":   {two, placement.Want{Isolation: cove.BoundaryUserKernel}, cove.Unsupported, []string{"require.isolation:", "user_kernel is wanted"}},
		"named too weak":     {two, placement.Want{Provider: "gvisor", Isolation: cove.BoundaryMicroVM}, cove.Unsupported, []string{"microvm is wanted", `"b" has`}},
		"unknown floor":      {two, placement.Want{Isolation: "strong"}, cove.Unsupported, []string{"strong is wanted"}},
		"template":           {two, placement.Want{Template: "none"}, cove.Unsupported, []string{"template:", `"b" has base and science`}},
		"template elsewhere": {append(two, node("c", also("x", cove.BoundaryNone))), placement.Want{Provider: "x", Template: "science"}, cove.Unsupported, []string{"template:", `"c" has base`}},
		"too large":          {two, placement.Want{Memory: 11 * cove.GiB}, cove.Exhausted, []string{"11g", "10g"}},
		"default down":       {[]cove.Node{node("a", defaultDown, also("docker", cove.BoundaryNamespaces))}, placement.Want{}, cove.Unavailable, []string{`"a" has docker`}},
		"pin is away":        {[]cove.Node{node("a"), node("b", is(cove.NodeAway))}, placement.Want{Pin: "b"}, cove.Unavailable, []string{`"b"`, "is away"}},
		"pin is unknown":     {two, placement.Want{Pin: "z"}, cove.Unavailable, []string{"is not there"}},
	} {
		got, err := placement.Order(tt.nodes, tt.want, chance())
		if cove.CodeOf(err) != tt.code || cove.RemedyOf(err) == "" || got != nil {
			t.Errorf("%s: %v, %v, remedy %q", name, names(got), err, cove.RemedyOf(err))
		}
		for _, s := range tt.says {
			if !strings.Contains(cove.MessageOf(err), s) {
				t.Errorf("%s: %q does not say %q", name, cove.MessageOf(err), s)
			}
		}
	}
}

// TestMessagesAreBounded has nodes that say too much of themselves.
func TestMessagesAreBounded(t *testing.T) {
	var nodes []cove.Node
	for i := range 1000 {
		nodes = append(nodes, node(fmt.Sprintf("%d-%s", i, strings.Repeat("n", 1000)), also(strings.Repeat("p", 1000), "b"), has(strings.Repeat("t", 10000))))
	}
	for _, w := range []placement.Want{{Provider: strings.Repeat("x", 1000)}, {Template: strings.Repeat("x", 1000)}, {Isolation: "strong"}, {Memory: cove.TiB}, {Pin: strings.Repeat("x", 1000)}} {
		if _, err := placement.Order(nodes, w, chance()); err == nil || len(err.Error()) > 4096 {
			t.Errorf("%.60v: a message of %d bytes", w, len(err.Error()))
		}
	}
}

func nodesOf(rt *rapid.T) []cove.Node {
	boundary := rapid.SampledFrom(cove.Boundaries())
	one := rapid.Custom(func(rt *rapid.T) cove.Node {
		n := cove.Node{
			ID:        rapid.SampledFrom(strings.Split("abcdefghijklmnopqrstuvwxyz", "")).Draw(rt, "id"),
			State:     rapid.SampledFrom(cove.NodeStates()).Draw(rt, "state"),
			Templates: rapid.SliceOfN(rapid.SampledFrom([]string{"base", "science"}), 0, 2).Draw(rt, "templates"),
			Capacity:  cove.Bounds{Sessions: rapid.IntRange(-1, 4).Draw(rt, "sessions"), Memory: cove.Bytes(rapid.IntRange(-1, 8).Draw(rt, "memory"))},
			Used:      cove.Bounds{Sessions: rapid.IntRange(-1, 5).Draw(rt, "used sessions"), Memory: cove.Bytes(rapid.IntRange(-1, 9).Draw(rt, "used memory"))},
			Pool:      rapid.IntRange(-1, 3).Draw(rt, "pool"),
		}
		for i, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"local", "gvisor"}), 0, 2, rapid.ID).Draw(rt, "providers") {
			n.Providers = append(n.Providers, cove.NodeProvider{Name: name, Boundary: boundary.Draw(rt, "boundary"), Default: i == 0 && rapid.Bool().Draw(rt, "default")})
		}
		return n
	})
	return rapid.SliceOfN(one, 0, 40).Draw(rt, "nodes")
}

func wantOf(rt *rapid.T) placement.Want {
	return placement.Want{
		Provider:  rapid.SampledFrom([]string{"", "", "local", "gvisor"}).Draw(rt, "provider"),
		Fallback:  rapid.SampledFrom([][]string{nil, {"gvisor"}, {"gvisor", "local"}}).Draw(rt, "fallback"),
		Isolation: rapid.SampledFrom([]cove.Boundary{"", "", cove.BoundaryNamespaces, cove.BoundaryMicroVM}).Draw(rt, "isolation"),
		Template:  rapid.SampledFrom([]string{"", "base", "science"}).Draw(rt, "template"),
		Memory:    cove.Bytes(rapid.IntRange(-1, 8).Draw(rt, "memory")),
		Pin:       rapid.SampledFrom([]string{"", "", "", "a", "q"}).Draw(rt, "pin"),
	}
}

// would says by itself whether a node could serve: the rules once more, as they
// are written down, for a single node.
func would(n cove.Node, w placement.Want) bool {
	i := slices.IndexFunc(n.Providers, func(p cove.NodeProvider) bool { return p.Name == w.Provider })
	if w.Provider == "" {
		i = slices.IndexFunc(n.Providers, func(p cove.NodeProvider) bool { return p.Default })
		for _, name := range w.Fallback {
			if i < 0 {
				i = slices.IndexFunc(n.Providers, func(p cove.NodeProvider) bool { return p.Name == name })
			}
		}
	}
	return i >= 0 && n.State == cove.NodeReady && (w.Pin == "" || w.Pin == n.ID) &&
		(w.Isolation == "" || n.Providers[i].Boundary.AtLeast(w.Isolation)) &&
		(w.Template != "science" || slices.Contains(n.Templates, "science")) &&
		(n.Capacity.Memory <= 0 || n.Capacity.Memory >= w.Memory)
}

func TestOrderHolds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		nodes, w, seed := nodesOf(rt), wantOf(rt), rapid.Uint64().Draw(rt, "seed")
		draws := 0
		before := slices.Clone(nodes)
		order := func() ([]cove.Node, error) {
			rng := rand.New(rand.NewPCG(seed, 0))
			return placement.Order(nodes, w, func(n int) int { draws++; return rng.IntN(n) })
		}
		got, err := order()
		if draws > 2 {
			rt.Fatalf("chance was asked %d times", draws)
		}
		again, _ := order()
		if !cmp.Equal(got, again) || !cmp.Equal(nodes, before) {
			rt.Fatalf("%s, then %s; or the nodes were changed", names(got), names(again))
		}
		// Of nodes with the same name the first that is ready counts.
		able := map[string]bool{}
		for _, n := range nodes {
			if _, seen := able[n.ID]; !seen && n.State == cove.NodeReady {
				able[n.ID] = would(n, w)
			}
		}
		count := 0
		for _, ok := range able {
			if ok {
				count++
			}
		}
		if (err == nil) != (count > 0) || err == nil && len(got) == 0 {
			rt.Fatalf("%d nodes would do, and the answer is %s, %v", count, names(got), err)
		}
		seen := map[string]bool{}
		for _, n := range got {
			if n.State != cove.NodeReady || seen[n.ID] || !able[n.ID] {
				rt.Fatalf("%s is in %s", n.ID, names(got))
			}
			seen[n.ID] = true
		}
		if count <= placement.Most && len(got) != count || len(got) > 4*placement.Most {
			rt.Fatalf("%d of %d are asked", len(got), count)
		}
	})
}

// BenchmarkOrder is what one placement costs among 1,000 nodes.
func BenchmarkOrder(b *testing.B) {
	var nodes []cove.Node
	for i := range 1000 {
		nodes = append(nodes, node(fmt.Sprintf("n%04d", i), uses(cove.Bytes(i*7919%10)*cove.GiB, i%7)))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := placement.Order(nodes, placement.Want{Memory: cove.GiB}, rand.IntN); err != nil {
			b.Fatal(err)
		}
	}
}
