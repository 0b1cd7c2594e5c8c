// Package providertest is the conformance suite of [cove.Provider]. Every
// provider runs it, from the fake to the ones that isolate for real, and what
// it demands is the contract: where the comments of the root package leave
// something open, the cases here decide it.
//
// A provider's own test is a few lines:
//
//	func TestConformance(t *testing.T) {
//		providertest.Run(t, func(t *testing.T) cove.Provider {
//			p, err := local.New(local.Config{Dir: providertest.Dir(t)})
//			if err != nil {
//				t.Fatal(err)
//			}
//			providertest.Ready(t, p)
//			return p
//		})
//	}
//
// The group escape runs the abuse battery of package escape, which needs the
// test's own executable as the attacker:
//
//	func TestMain(m *testing.M) {
//		if escape.Summoned(os.Args) {
//			os.Exit(escape.Main(os.Args[1:]))
//		}
//		os.Exit(m.Run())
//	}
//
// The scripts that the cases run are plain POSIX shell and coreutils, so that
// they mean the same on every provider. What a provider says it cannot do is
// skipped, by one helper that names the missing capability. The suite must not
// know any provider, must not sleep, and must leave nothing behind.
package providertest
