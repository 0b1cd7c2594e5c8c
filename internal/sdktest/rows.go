package sdktest

// Row is one thing that users of an SDK do, and the name of the case that does it.
type Row struct {
	Case string
	What string
	// No says why it is not supported; "" is for what must work with every SDK that
	// has the call.
	No string
}

// Section is some rows under one heading.
type Section struct {
	Title string
	Rows  []Row
}

const (
	noHosts = "Host names of sandboxes are there in domain mode alone; with URLs there is one host for all."
	noMCP   = "E2B's gateway is a program of its own image; Cove has an MCP server of its own."
)

// Sections are the rows of the table in order. Every SDK has a case for each of them.
var Sections = []Section{
	{Title: "Sandboxes", Rows: []Row{
		{Case: "create", What: "create a sandbox, ask whether it runs"},
		{Case: "create_env", What: "environment at create"},
		{Case: "create_metadata", What: "metadata, and listing by it"},
		{Case: "create_mcp", What: "`mcp` at create", No: noMCP},
		{Case: "connect", What: "connect to a sandbox by its id"},
		{Case: "connect_extends", What: "connecting moves the end later, never sooner"},
		{Case: "list", What: "list all"},
		{Case: "list_pages", What: "list in pages, the newest first"},
		{Case: "list_state", What: "list by state"},
		{Case: "kill", What: "kill"},
		{Case: "kill_twice", What: "killing what is gone is `false`"},
		{Case: "set_timeout", What: "set the timeout, later and sooner"},
		{Case: "timeout_ends", What: "the timeout ends a busy sandbox"},
		{Case: "info", What: "info"},
		{Case: "metrics", What: "metrics"},
		{Case: "network", What: "change the names that the network allows"},
		{Case: "network_close", What: "close an open network", No: "A sandbox with an open network keeps it. One with a list of names, or with none, can be changed."},
		{Case: "network_none", What: "a sandbox without internet"},
		{Case: "wrong_key", What: "a wrong key is told"},
		{Case: "other_tenant", What: "another tenant's sandbox does not exist"},
		{Case: "unknown_sandbox", What: "an unknown sandbox is told"},
	}},
	{Title: "Pause, fork and snapshots", Rows: []Row{
		{Case: "pause", What: "pause; pausing again is `false`"},
		{Case: "resume", What: "connecting resumes, with programs that go on"},
		{Case: "pause_files_only", What: "pause without memory"},
		{Case: "auto_pause", What: "pause at the timeout"},
		{Case: "auto_resume", What: "a paused sandbox resumes when it is used"},
		{Case: "fork", What: "fork"},
		{Case: "snapshot", What: "a snapshot, and a sandbox from it"},
		{Case: "snapshot_list", What: "list snapshots in pages"},
		{Case: "snapshot_delete", What: "delete a snapshot"},
	}},
	{Title: "Commands and terminals", Rows: []Row{
		{Case: "run", What: "run a command, with its output as it comes"},
		{Case: "run_fail", What: "a failing command"},
		{Case: "run_env_cwd_user", What: "environment, folder and user of a command"},
		{Case: "run_root", What: "a command as `root`", No: "A sandbox has one user, who is not root."},
		{Case: "run_timeout", What: "a deadline kills the command"},
		{Case: "run_disconnect", What: "a disconnect does not"},
		{Case: "background", What: "a command in the background"},
		{Case: "stdin", What: "send to its input"},
		{Case: "close_stdin", What: "close its input"},
		{Case: "stream_input", What: "stream to its input"},
		{Case: "kill_command", What: "kill it; killing what is gone is `false`"},
		{Case: "list_commands", What: "list what runs"},
		{Case: "connect_command", What: "connect to what runs"},
		{Case: "big_output", What: "3 MB of output"},
		{Case: "runes", What: "text of any language, whole"},
		{Case: "many_runs", What: "a hundred commands in a row"},
		{Case: "pty", What: "a terminal"},
		{Case: "pty_resize", What: "resize it"},
		{Case: "pty_connect", What: "connect to it"},
	}},
	{Title: "Files", Rows: []Row{
		{Case: "read", What: "read text"},
		{Case: "read_bytes", What: "read bytes"},
		{Case: "read_stream", What: "read a stream"},
		{Case: "write", What: "write, with the folders above it"},
		{Case: "write_many", What: "write many at once"},
		{Case: "write_octet", What: "write as plain bytes"},
		{Case: "write_gzip", What: "write and read compressed"},
		{Case: "metadata", What: "metadata of a file"},
		{Case: "list_dir", What: "list a folder, to a depth"},
		{Case: "stat", What: "info of a file"},
		{Case: "symlink", What: "info of a symbolic link"},
		{Case: "exists", What: "exists"},
		{Case: "mkdir", What: "make a folder"},
		{Case: "move", What: "rename"},
		{Case: "remove", What: "remove"},
		{Case: "watch", What: "watch a folder"},
		{Case: "watch_chmod", What: "watch permissions"},
		{Case: "watch_rename", What: "watch renames as such"},
		{Case: "watch_recursive", What: "watch what is below it, too"},
		{Case: "watch_many", What: "watch while 2,000 files are made"},
		{Case: "upload_url", What: "a signed link to write a file"},
		{Case: "download_url", What: "a signed link to read a file"},
		{Case: "url_expired", What: "such a link expires"},
		{Case: "host_port", What: "the host name of a port", No: noHosts},
		{Case: "host_private", What: "a port that needs a token", No: noHosts},
	}},
	{Title: "Code", Rows: []Row{
		{Case: "run_code", What: "run code that remembers"},
		{Case: "code_stream", What: "its output as it comes"},
		{Case: "code_runes", What: "text of any language, whole"},
		{Case: "code_env", What: "environment of a run"},
		{Case: "code_files", What: "files of the sandbox"},
		{Case: "code_error", What: "an error with its traceback"},
		{Case: "code_png", What: "a picture of matplotlib"},
		{Case: "code_chart", What: "its chart as data", No: "Charts as data come from a package in E2B's own image. The picture is there."},
		{Case: "code_data", What: "a DataFrame as data"},
		{Case: "code_js", What: "JavaScript"},
		{Case: "code_bash", What: "Bash"},
		{Case: "code_other", What: "R, Java and others", No: "There are interpreters for Python, JavaScript, TypeScript and Bash."},
		{Case: "contexts", What: "contexts of their own"},
		{Case: "context_list", What: "list and remove contexts"},
		{Case: "context_restart", What: "restart a context"},
		{Case: "code_disconnect", What: "a deadline interrupts code, which then remembers"},
	}},
	{Title: "Templates, volumes, secrets, git", Rows: []Row{
		{Case: "template_exists", What: "whether a template exists"},
		{Case: "template_tags", What: "tags of a template"},
		{Case: "template_build", What: "build a template, where the server has Docker"},
		{Case: "volume", What: "a volume, in two sandboxes"},
		{Case: "volume_files", What: "the files of a volume"},
		{Case: "secret", What: "list secrets"},
		{Case: "secret_write", What: "write a secret", No: "Secrets are written in the server's settings, where no client reads or changes them."},
		{Case: "git", What: "git"},
	}},
}
