package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// clientServer is one server in the configuration of a client. The formats differ in names only.
type clientServer struct {
	Command string            `json:"command" toml:"command"`
	Args    []string          `json:"args" toml:"args"`
	Type    string            `json:"type" toml:"type"`
	URL     string            `json:"url" toml:"url"`
	HTTPURL string            `json:"httpUrl" toml:"httpUrl"`
	Headers map[string]string `json:"headers" toml:"headers"`
	Bearer  string            `json:"bearer_token_env_var" toml:"bearer_token_env_var"`
}

// clientFormats say for each sample under which key its client looks for servers, and how it refers to the token.
// The clients' public documentation is the source.
var clientFormats = map[string]struct{ key, token string }{
	"claude-code.json":      {key: "mcpServers"},
	"claude-code-http.json": {key: "mcpServers", token: "${RIG_BRIDGE_TOKEN}"},
	"claude-desktop.json":   {key: "mcpServers"},
	"codex.toml":            {key: "mcp_servers"},
	"codex-http.toml":       {key: "mcp_servers"},
	"cursor.json":           {key: "mcpServers"},
	"cursor-http.json":      {key: "mcpServers", token: "${env:RIG_BRIDGE_TOKEN}"},
	"gemini.json":           {key: "mcpServers"},
	"gemini-http.json":      {key: "mcpServers", token: "$RIG_BRIDGE_TOKEN"},
	"vscode.json":           {key: "servers"},
	"vscode-http.json":      {key: "servers", token: "${input:rig-bridge-token}"},
}

func clientSamples(t *testing.T) map[string]clientServer {
	t.Helper()
	dir := filepath.Join(daemon.Root(), "config/samples/clients")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]clientServer{}
	for _, e := range entries {
		format, ok := clientFormats[e.Name()]
		if !ok {
			t.Errorf("nothing is known about %s", e.Name())
			continue
		}
		var raw map[string]any
		if filepath.Ext(e.Name()) == ".toml" {
			_, err = toml.DecodeFile(filepath.Join(dir, e.Name()), &raw)
		} else {
			err = json.Unmarshal([]byte(text(t, filepath.Join(dir, e.Name()))), &raw)
		}
		if err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		servers, _ := raw[format.key].(map[string]any)
		b, err := json.Marshal(servers["rig-bridge"])
		if err != nil {
			t.Fatal(err)
		}
		var server clientServer
		d := json.NewDecoder(strings.NewReader(string(b)))
		d.DisallowUnknownFields()
		if err := d.Decode(&server); err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		found[e.Name()] = server
	}
	if len(found) != len(clientFormats) {
		t.Errorf("%d samples, %d formats", len(found), len(clientFormats))
	}
	return found
}

// TestClientConfigurations does with each configuration that we give to people what its client would do with it.
func TestClientConfigurations(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	secret := strings.TrimPrefix(d.Authorization(), "Bearer ")
	for name, s := range clientSamples(t) {
		t.Run(name, func(t *testing.T) {
			token := clientFormats[name].token
			switch {
			case s.Command != "":
				if s.Command != "rig-bridge" || s.Type != "" && s.Type != "stdio" || s.URL != "" || s.HTTPURL != "" {
					t.Fatalf("%+v", s)
				}
				cmd := exec.CommandContext(bounded(t, daemon.StartTimeout), d.Binary(), s.Args...)
				cmd.Env = append(os.Environ(), "RIG_BRIDGE_STATE_DIR="+d.StateDir(), "HOME="+d.Home())
				cmd.Stdin = strings.NewReader(initialize + "\n")
				out, err := cmd.Output()
				if err != nil || !strings.Contains(string(out), `"serverInfo"`) {
					t.Errorf("%v: %s", err, out)
				}
			case s.Bearer != "":
				if s.Bearer != "RIG_BRIDGE_TOKEN" || len(s.Headers) > 0 {
					t.Errorf("%+v", s)
				}
				reaches(t, d, s.URL, "Bearer "+secret)
			default:
				url := s.URL + s.HTTPURL // one of them
				if strings.HasPrefix(name, "gemini") != (s.HTTPURL != "") {
					t.Errorf("the address is under the wrong name: %+v", s)
				}
				if got := slices.Collect(maps.Keys(s.Headers)); !slices.Equal(got, []string{"Authorization"}) || !strings.HasSuffix(s.Headers["Authorization"], token) {
					t.Errorf("headers %v", s.Headers)
				}
				reaches(t, d, url, strings.Replace(s.Headers["Authorization"], token, secret, 1))
			}
		})
	}
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"sample","version":"1"}}}`

// reaches opens an MCP connection with what a configuration says; only the port is the test's.
func reaches(t *testing.T, d *daemon.Daemon, url, authorization string) {
	t.Helper()
	const standard = "http://127.0.0.1:8767"
	if !strings.HasPrefix(url, standard+"/") {
		t.Fatalf("the address is %s", url)
	}
	if _, err := daemon.NewClient(strings.Replace(url, standard, d.Base(), 1), authorization).Initialize(context.Background(), "2025-06-18"); err != nil {
		t.Error(err)
	}
}

// blocks are the fenced blocks of a Markdown file.
var blocks = regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```$")

// The README shows what it says: the configurations are the samples, and the note to assistants is the text that
// the server gives them.
func TestReadmeShowsTheTruth(t *testing.T) {
	readme := text(t, filepath.Join(daemon.Root(), "README.md"))
	var shown []string
	for _, m := range blocks.FindAllStringSubmatch(readme, -1) {
		shown = append(shown, m[1])
	}
	for _, name := range []string{"claude-desktop.json", "codex.toml", "codex-http.toml", "cursor-http.json", "gemini-http.json", "vscode.json", "vscode-http.json", "claude-code-http.json"} {
		if !slices.Contains(shown, text(t, filepath.Join(daemon.Root(), "config/samples/clients", name))) {
			t.Errorf("the README does not show config/samples/clients/%s as it is", name)
		}
	}
	raw, err := daemon.Start(t, daemon.Options{}).Client().Initialize(context.Background(), "2025-06-18")
	if err != nil {
		t.Fatal(err)
	}
	var said struct{ Instructions string }
	if err := json.Unmarshal(raw, &said); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(shown, strings.TrimSpace(said.Instructions)+"\n") {
		t.Error("the README does not show the server's instructions as they are (mcpserver/tools/instructions.md)")
	}
}
