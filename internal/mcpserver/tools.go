package mcpserver

import "github.com/modelcontextprotocol/go-sdk/mcp"

// addTools gives the server all its tools.
func (f *face) addTools() {
	changes := func() *mcp.ToolAnnotations { return &mcp.ToolAnnotations{OpenWorldHint: new(false)} }
	looks := func() *mcp.ToolAnnotations {
		return &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(false)}
	}
	add[codeIn, codeOut](f, &mcp.Tool{
		Name: "execute_code", Title: "Run code", Annotations: changes(),
		Description: "Runs code in an interpreter that remembers variables and imports from call to call, in the sandbox. Shows what it prints, the value of its last expression, and plots as images.",
	}, runCode)
	add[commandIn, commandOut](f, &mcp.Tool{
		Name: "execute_command", Title: "Run a command", Annotations: changes(),
		Description: "Runs a shell line in the sandbox, in a fresh shell, and returns its output and exit code. Files stay for the next call; the working directory and variables of the shell do not.",
	}, runCommand)
	add[pythonIn, pythonOut](f, &mcp.Tool{
		Name: "run_python_code", Title: "Run Python code", Annotations: changes(),
		Description: "Runs Python code in the sandbox and returns a text, whatever happens: its output, or why it did not work. Dangerous imports may be blocked.",
	}, runPython)
	add[readIn, readOut](f, &mcp.Tool{
		Name: "read_file", Title: "Read a file", Annotations: looks(),
		Description: "Reads a file of the sandbox, or the rest of an output that was cut. Images are shown. Long ones are read in parts, by offset.",
	}, readFile)
	add[writeIn, writeOut](f, &mcp.Tool{
		Name: "write_file", Title: "Write a file", Annotations: &mcp.ToolAnnotations{IdempotentHint: true, OpenWorldHint: new(false)},
		Description: "Writes a file into the sandbox, replacing what was there, and makes missing directories.",
	}, writeFile)
	add[listIn, listOut](f, &mcp.Tool{
		Name: "list_files", Title: "List files", Annotations: looks(),
		Description: "Lists the files of the sandbox below a directory.",
	}, listFiles)
	add[none, sessionsOut](f, &mcp.Tool{
		Name: "get_sessions", Title: "List sessions", Annotations: looks(),
		Description: "Lists the sandboxes that there are, newest first, and which of them is used where no session_id is given.",
	}, getSessions)
	add[stopIn, stopOut](f, &mcp.Tool{
		Name: "stop_session", Title: "Stop a session", Annotations: &mcp.ToolAnnotations{DestructiveHint: new(true), IdempotentHint: true, OpenWorldHint: new(false)},
		Description: "Ends what runs in a sandbox and frees it. Its files are kept for a while, and are there when it is used again.",
	}, stopSession)
	add[none, volumesOut](f, &mcp.Tool{
		Name: "get_volume_mappings", Title: "List volumes", Annotations: looks(),
		Description: "Lists the directories of the host that the operator lets sandboxes mount.",
	}, getVolumes)
	add[statsIn, statsOut](f, &mcp.Tool{
		Name: "get_resource_stats", Title: "Show resource use", Annotations: looks(),
		Description: "Shows how many sandboxes there are and what they may use, and what one of them uses now.",
	}, getStats)
	add[sqlIn, sqlOut](f, &mcp.Tool{
		Name: "run_sql", Title: "Ask data", Annotations: looks(),
		Description: "Runs one SELECT in DuckDB's dialect over a dataset of the server, in a sandbox of its own, and returns columns and rows. Tables are called dataset.table.",
	}, runSQL)
}

// none is no argument.
type none struct{}
