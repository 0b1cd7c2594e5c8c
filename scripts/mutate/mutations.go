package main

// mutation is a change that takes one defence or guarantee out of the product.
type mutation struct {
	name     string // what is missing, as docs/testing.md lists it
	file     string // relative to the root of the module
	old, new string // old occurs once in the file
	pkg      string // the package of the test
	test     string // the test of the gate that must fail, as go test -run names it
}

var mutations = []mutation{
	{
		"the system call filter of a local sandbox", "provider/local/plan_linux.go",
		"if h.cfg.weak.filter {", "if true {",
		"./provider/local", "TestDefencesAreMissed/filter",
	},
	{
		"the bound on the filters of programs", "internal/linux/seccomp/limit_linux.go",
		"for err == nil && room > ownInstructions+fillerCost+1 {", "for err == nil && room < 0 {",
		"./internal/linux/seccomp", "TestFiltersOfProgramsAreBounded",
	},
	{
		"the refusal of access control lists", "internal/linux/seccomp/sandbox_rules_linux.go",
		"Then: Fail(unix.EOPNOTSUPP)}", "Then: Allow}",
		"./internal/linux/seccomp", "TestSandboxArguments",
	},
	{
		"the limit on core files", "provider/local/plan_linux.go",
		"Most: coreLimit()", "Most: 0",
		"./provider/local", "TestDefencesAreMissed/filter",
	},
	{
		"the read-only mount of a volume", "provider/local/fence/volume_linux.go",
		"if !v.Write {", "if false {",
		"./provider/local", "TestDefencesAreMissed/volumes",
	},
	{
		"the network namespace of a local sandbox", "provider/local/plan_linux.go",
		"Network: !h.cfg.weak.network", "Network: false",
		"./provider/local", "TestDefencesAreMissed/network",
	},
	{
		"the watch over what the kernel keeps for a local sandbox", "provider/local/plan_linux.go",
		"agent.Args(!h.cfg.weak.kernel)", "agent.Args(false)",
		"./provider/local", "TestDefencesAreMissed/kernel",
	},
	{
		"the workspace in the memory of a local sandbox", "provider/local/create_linux.go",
		"l.Memory = int64(r.Memory) //", "l.Memory = int64(r.Memory) + placesOf(spec).Workspace.Size //",
		"./provider/local", "TestMemoryIsOneNumber",
	},
	{
		"the files that a fork begins with, in its bounds", "provider/local/share_linux.go",
		"Size: max(1, s.bounds.Size-s.shared.Size), Files: s.bounds.Files - s.shared.Files + extra", "Size: s.bounds.Size, Files: s.bounds.Files + extra",
		"./provider/local", "TestLayersLimitsTogether",
	},
	{
		"the bound on the memory of all sandboxes together", "internal/linux/cgroup/settle_linux.go",
		"if most == 0 || !h.has(\"memory\") {", "if true {",
		"./internal/linux/cgroup", "TestBoundOfAll",
	},
	{
		"the refusal of a workspace that leaves no memory", "engine/resolve.go",
		"if most := memory - memory/leftForPrograms; w.Size > most {", "if most := memory; false {",
		"./engine", "TestWorkspaceIsPartOfMemory",
	},
	{
		"the masks over files of /proc", "internal/linux/initproc/proc_linux.go",
		"return maskProc()", "return nil",
		"./provider/local", "TestConformance/escape",
	},
	{
		"leases that do not show", "internal/linux/userns/lease_linux.go",
		"unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB)", "unix.FcntlFlock(fd, unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})",
		"./internal/linux/userns", "TestLeasesDoNotShow",
	},
	{
		"the users of a gVisor sandbox", "provider/gvisor/host_linux.go",
		"if userns.CanLease() {", "if false {",
		"./provider/gvisor", "TestNeighboursAreDifferentUsersOfTheHost",
	},
	{
		"the settings of a host below /usr", "provider/local/plan_linux.go",
		"if h.cfg.weak.settings {", "if true {",
		"./provider/local", "TestSettingsOfTheHostAreOutOfReach",
	},
	{
		"act in a method of Platform", "engine/sessions.go",
		"\treturn act(ctx, p.v, on(cove.SessionGet, id), func(_ context.Context, st *step) (*cove.Session, error) {\n\t\treturn st.lease.view(), nil\n\t})\n",
		"\tl, err := p.v.e.find(p.v.p.Tenant, id)\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\treturn l.view(), nil\n",
		"./engine", "TestEveryMethodIsGuarded/Sessions.Get",
	},
	{
		"the scope of a key before its body is read", "internal/httpapi/api.go",
		"if len(to.needs) > 0 {", "if false {",
		"./internal/httpapi", "TestScopeBeforeBody",
	},
	{
		"the bound on the bodies of a key", "internal/intake/budget.go",
		"case b.keys[key]+n > b.key:", "case false:",
		"./internal/intake", "TestShareOfAKey",
	},
	{
		"the comparison of tenants when a session is looked up", "engine/find.go",
		"if l.tenant != tenant {", "if false {",
		"./engine", "TestPlatform/tenants",
	},
	{
		"a write of the store", "store/sqlite/session.go",
		"changed, err := s.writer.exec(ctx, query, args...)", "changed, err := int64(len(query)), error(nil)",
		"./store/sqlite", "TestStore/Session",
	},
	{
		"the comparison of versions in Redis", "store/redis/script/session_put.lua",
		"if (old and old.version or '0') ~= expected then return {'version'} end", "",
		"./store/redis", "TestStore/Session",
	},
	{
		"the refusal of a program by a command policy", "internal/policy/call.go",
		"case kind == KindProgram && !j.list.allow[known]:", "case kind == KindProgram && !j.list.allow[known] && known != \"perl\":",
		"./internal/policy", "TestRefusedLines",
	},
	{
		"the Landlock domain of a program under a command policy", "internal/guest/agent/start.go",
		"User: s.user, Confinement: confined,", "User: s.user,",
		"./internal/daemon", "TestUnlistedProgramsAreStopped",
	},
	{
		"programs that a listed program cannot read", "internal/guest/agent/confine.go",
		"slices.Contains(programDirs, at) {", "false {",
		"./provider/local", "TestConformance/programs/others_do_not",
	},
	{
		"landlock around the Python that answers questions", "internal/datarun/pyrun/confine.py",
		"    ask(call, RESTRICT, ruleset, QUIET if version >= 7 else 0)\n", "",
		"./internal/datarun/pyrun", "TestAttacksOfCode",
	},
	{
		"the filter of calls of the Python that answers questions", "internal/datarun/pyrun/confine.py",
		"        refuse(libc.syscall)\n", "",
		"./internal/datarun/pyrun", "TestAttacksOfCode",
	},
	{
		"the refusal of methods whose names are made at run time", "internal/analyze/facts.py",
		"if not self.fixed(arg, pair=True):", "if False:",
		"./internal/pypolicy", "TestEvasion",
	},
	{
		"the API key of a route", "internal/httpapi/api.go",
		"if !to.open {", "if !to.open && to.pattern != \"/api/stats\" {",
		"./internal/httpapi", "TestWithoutAKey",
	},
	{
		"the checksum of an archive", "internal/archive/seal.go",
		"if s.have.of(s.of) != s.want {", "if false {",
		"./internal/archive", "TestDamage",
	},
	{
		"the session in the seal of an archive", "internal/archive/archive.go",
		"case of != \"\" && of != id:", "case false:",
		"./internal/archive", "TestArchiveOfAnotherSession",
	},
	{
		"the comparison of the database with the copies of its records", "internal/daemon/serve.go",
		"join: s.asNode, look: s.look,", "join: s.asNode,",
		"./internal/daemon", "TestLostDatabaseIsRecovered",
	},
	{
		"the sum of a line of the journal", "internal/audit/verify.go",
		"if v.chain != nil && v.chain.sum(r.body) != r.sum {", "if false {",
		"./internal/audit", "TestEveryByteCounts",
	},
	{
		"the expiry of a signed link", "internal/ticket/book.go",
		"if !time.Now().Before(until) {", "if false {",
		"./internal/ticket", "TestTimeIsUp",
	},
	{
		"the refusal of metadata addresses", "internal/egress/address.go",
		"\t\treturn slices.Contains(private, netip.PrefixFrom(a, a.BitLen()))\n", "\t\treturn true\n",
		"./internal/egress", "TestReachable",
	},
	{
		"the refusal of SQL functions that read files", "internal/sqlpolicy/function.go",
		"{becauseFiles, `read_* ", "{becauseFiles, `",
		"./internal/sqlpolicy", "TestDangerousFunctions",
	},
	{
		"the digest of a template's files", "internal/rootfs/use.go",
		"if err != nil || found.digest != m.Digest {", "if err != nil || found.digest == \"\" {",
		"./internal/rootfs", "TestChecked",
	},
	{
		"the access token of an E2B sandbox", "internal/e2bapi/auth.go",
		"\treturn badToken()\n}\n\nfunc badToken", "\treturn nil\n}\n\nfunc badToken",
		"./internal/e2bapi", "TestAccess",
	},
	{
		"the network ceiling of E2B clients", "internal/e2bapi/network.go",
		"if !c.exceeds(mode) {", "if true {",
		"./internal/e2bapi", "TestNetworkCeiling",
	},
	{
		"the scope for templates that all tenants share", "engine/templates.go",
		"if !c.shared {\n\t\ta.Tenant", "if true {\n\t\ta.Tenant",
		"./engine", "TestSharedTemplates",
	},
	{
		"the tenant in the name of a template", "engine/templates.go",
		"if full, err = e.ownTemplate(ctx, t.v.p.Tenant, c.name); err != nil {", "if full = c.name; false {",
		"./engine", "TestTemplatesOfTenants",
	},
	{
		"the refusal of paths into /proc", "internal/guest/agent/resolve.go",
		"\t\treturn errKernelFiles\n", "\t\treturn nil\n",
		"./provider/local", "TestConformance/names/files_of_the_kernel",
	},
	{
		"the values of variables that answers leave out", "engine/visible.go",
		"s.Spec = s.Spec.Redacted(); plainTemplate", "plainTemplate",
		"./engine", "TestPlatform/sessions/names_of_variables",
	},
	{
		"the start of sessions that the server stopped", "session.go",
		"(s.Spec.Wake || s.ByServer())", "s.Spec.Wake",
		"./engine", "TestEvictedSessionsComeBackOnUse",
	},
	{
		"the paths of the host that errors leave out", "engine/told.go",
		"return v.e.cfg.Paths.Error(err)", "return err",
		"./engine", "TestPathsOfTheHost",
	},
	{
		"the limit on output", "internal/spool/log.go",
		"if limit <= 0 || l.exceeded ||", "if limit <= 1<<40 || l.exceeded ||",
		"./internal/spool", "TestLimitIsToldOnce",
	},
	{
		"the bound on what a tenant keeps on the disk", "engine/disk.go",
		"case bound > 0 && beside+now.bytes > bound && !must:", "case bound > 1<<40 && beside+now.bytes > bound && !must:",
		"./engine", "TestTenantDisk",
	},
	{
		"the guard of a program's input", "internal/guest/start.go",
		"p.guarded = !p.relayed && c.version >= protocol.Guards", "p.guarded = false",
		"./internal/guest", "TestInputOfAKilledHost/descriptors",
	},
	{
		"the failure for an unknown group of a suite", "provider/providertest/suite.go",
		"\tif err := known(all, only); err != nil {\n", "\tif err := known(all, only); err != nil && false {\n",
		"./provider/providertest", "TestRunChecksGroups",
	},
}
