//go:build !lean

package cli

func (a *app) commands() []command {
	const work, operate = "work", "operate"
	return []command{
		{"run", work, a.runCommand},
		{"code", work, a.codeCommand},
		{"sql", work, a.sqlCommand},
		{"run-python", work, a.runPythonCommand},
		{"chat", work, a.chatCommand},
		{"dataset", work, a.datasetCommand},
		{"sandbox", work, a.sandboxCommand},
		{"volume", work, a.volumeCommand},
		{"template", work, a.templateCommand},
		{"mcp", work, a.mcpCommand},
		{"serve", operate, a.serveCommand},
		{"doctor", operate, a.doctorCommand},
		{"verify", operate, a.verifyCommand},
		{"bench", operate, a.benchCommand},
		{"key", operate, a.keyCommand},
		{"login-link", operate, a.loginLinkCommand},
		{"tenant", operate, a.tenantCommand},
		{"node", operate, a.nodeCommand},
		{"recover", operate, a.recoverCommand},
		{"audit", operate, a.auditCommand},
		{"version", operate, a.versionCommand},
	}
}
