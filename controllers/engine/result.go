package engine

// Env is where a tool call runs. All paths are absolute.
type Env struct {
	// Cwd is the workspace's working directory, with links resolved.
	Cwd string
	// Home is the account's home directory, used for "~" and for account-wide configuration.
	Home string
	// ConfigHome is the account's configuration directory ($XDG_CONFIG_HOME, else Home/.config).
	ConfigHome string
	// OutputDir is the owner-only directory for the full output of commands.
	OutputDir string
	// Environ is the environment of commands, as os.Environ gives it; nil means the process's own.
	Environ []string
}

// Image is one image block of a result.
type Image struct {
	MIMEType string
	Data     []byte
}

// Result is what a tool that succeeded gives back.
type Result struct {
	// Text is the complete text for the assistant, notices included.
	Text string
	// Images follow the text; only read produces them.
	Images []Image
	// Details is the tool's own metadata, encoded as JSON under "details"; nil when there is none.
	Details any
	// Path is the resolved absolute path, where the tool has one to show.
	Path string
	// Revision is "sha256:" and the lower-case hex digest of the file's bytes, or "missing".
	Revision string
	// ChangedPaths are the files that the call changed.
	ChangedPaths []string
}
