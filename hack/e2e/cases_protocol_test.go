package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestProtocolCases runs what public reports tell of transports, schemas and local endpoints.
func TestProtocolCases(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	for _, c := range []struct {
		id  string
		run func(*room)
	}{
		{"K6", initializeWithAnOldSession}, {"K11", allHintsAreTold}, {"K13", lastRequestOfEachClient},
		{"L1", topLevelIsAnObject}, {"L3", propertiesAreAnObject}, {"L6", noReferences},
		{"M1", foreignHostAndOrigin}, {"M6", noSecretInTheAddress}, {"M8", noSandboxIsClaimed},
	} {
		t.Run(c.id, func(t *testing.T) { c.run(newRoom(t, d)) })
	}
}

// K6: a client that begins anew sends the id of an earlier life; it gets a session all the same.
func initializeWithAnOldSession(k *room) {
	for name, old := range map[string]string{"forged": "00000000-0000-4000-8000-000000000000", "ended": endedSession(k)} {
		status, header, body := post(k.T, k.d.Client(), initializeRequest, http.Header{"Mcp-Session-Id": {old}})
		if fresh := header.Get("Mcp-Session-Id"); status != http.StatusOK || fresh == "" || fresh == old {
			k.Errorf("%s: HTTP %d, session %q, %s", name, status, fresh, body)
		}
	}
}

const initializeRequest = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`

func endedSession(k *room) string {
	k.Helper()
	c := k.d.Client()
	if _, err := c.Initialize(bounded(k, time.Minute), "2025-06-18"); err != nil {
		k.Fatal(err)
	}
	header := http.Header{"Authorization": {k.d.Authorization()}, "Mcp-Session-Id": {c.Session()}}
	if status, body := request(k.T, http.MethodDelete, k.d.URL(), header); status/100 != 2 {
		k.Fatalf("DELETE: HTTP %d %s", status, body)
	}
	return c.Session()
}

// toolDefinition is a tool as a client sees it.
type toolDefinition struct {
	Name         string
	InputSchema  map[string]json.RawMessage
	OutputSchema map[string]json.RawMessage
	Annotations  map[string]any
}

// definitions asks for the tools.
func definitions(k *room) []toolDefinition {
	k.Helper()
	raw, err := k.client.Request(bounded(k, time.Minute), "tools/list", nil)
	if err != nil {
		k.Fatal(err)
	}
	var list struct{ Tools []toolDefinition }
	if err := json.Unmarshal(raw, &list); err != nil || len(list.Tools) != 15 {
		k.Fatalf("%d tools, %v", len(list.Tools), err)
	}
	return list.Tools
}

// K11: hosts show a tool only with all its hints. That each is true to fact: a tool that claims to change nothing
// is called and the directory compared.
func allHintsAreTold(k *room) {
	var readOnly []string
	for _, tool := range definitions(k) {
		for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			if _, ok := tool.Annotations[hint].(bool); !ok {
				k.Errorf("%s: %s is %v", tool.Name, hint, tool.Annotations[hint])
			}
		}
		if tool.Annotations["readOnlyHint"] == true {
			readOnly = append(readOnly, tool.Name)
			if tool.Annotations["destructiveHint"] == true {
				k.Errorf("%s changes nothing and destroys", tool.Name)
			}
		}
	}
	slices.Sort(readOnly)
	if got := strings.Join(readOnly, " "); got != "find grep ls operation_wait read skill_info workspace_list" {
		k.Errorf("tools that change nothing: %s", got)
	}
	k.put("f.txt", "text\n")
	before := k.shape()
	for tool, args := range map[string]daemon.Args{
		"find": {"pattern": "*"}, "grep": {"pattern": "text"}, "ls": {}, "read": {"path": "f.txt"}, "skill_info": {},
	} {
		if r := k.call(tool, args); r.IsError {
			k.Errorf("%s: %s", tool, r.Text())
		}
	}
	if after := k.shape(); after != before {
		k.Errorf("the directory was %s and is %s", before, after)
	}
}

// shape is the names, modes, sizes and times of a room's files.
func (k *room) shape() string {
	k.Helper()
	var b strings.Builder
	err := filepath.WalkDir(k.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			b.WriteString(strings.Join([]string{path, info.Mode().String(), info.ModTime().String()}, " ") + "\n")
		}
		return err
	})
	if err != nil {
		k.Fatal(err)
	}
	return b.String()
}

// K13: the status tells when each client was last heard of, so that a silent host can be told from a broken server.
func lastRequestOfEachClient(k *room) {
	c := k.d.Client()
	c.Header = http.Header{"User-Agent": {"silent-host/1.0"}}
	before := time.Now().Add(-time.Second)
	c.OK(k, "ls", daemon.Args{"workspace_id": k.workspace})
	status, body := request(k.T, http.MethodGet, k.d.Base()+"/api/status", http.Header{"Authorization": {k.d.Authorization()}})
	var told struct {
		Clients []struct {
			UserAgent, LastMethod, LastTool string
			LastTime                        json.RawMessage
			Requests                        int
		}
	}
	if err := json.Unmarshal([]byte(body), &told); err != nil || status != http.StatusOK {
		k.Fatalf("status: HTTP %d, %v", status, err)
	}
	for _, client := range told.Clients {
		if client.UserAgent != "silent-host/1.0" {
			continue
		}
		if client.LastMethod != "tools/call" || client.LastTool != "ls" || client.Requests != 1 {
			k.Errorf("%+v", client)
		}
		if at := moment(k, client.LastTime); at.Before(before) || at.After(time.Now().Add(time.Second)) {
			k.Errorf("last heard of at %s", at)
		}
		return
	}
	k.Errorf("the client is not among %+v", told.Clients)
}

// moment reads a time that is written as milliseconds or as text.
func moment(k *room, raw json.RawMessage) (at time.Time) {
	k.Helper()
	var milliseconds int64
	if json.Unmarshal(raw, &milliseconds) == nil {
		return time.UnixMilli(milliseconds)
	}
	if err := json.Unmarshal(raw, &at); err != nil {
		k.Fatal(err)
	}
	return at
}

// eachSchema looks at the schemas of all tools.
func eachSchema(k *room, look func(name string, schema map[string]json.RawMessage)) {
	k.Helper()
	for _, tool := range definitions(k) {
		look(tool.Name+" input", tool.InputSchema)
		look(tool.Name+" output", tool.OutputSchema)
	}
}

// L1: one alternative at the top and a host drops all tools without a word.
func topLevelIsAnObject(k *room) {
	eachSchema(k, func(name string, schema map[string]json.RawMessage) {
		if string(schema["type"]) != `"object"` {
			k.Errorf("%s: type %s", name, schema["type"])
		}
		for _, word := range []string{"anyOf", "oneOf", "allOf", "not", "enum", "if"} {
			if _, has := schema[word]; has {
				k.Errorf("%s: %s at the top", name, word)
			}
		}
	})
}

// L3: properties are an object, never null and never left out.
func propertiesAreAnObject(k *room) {
	eachSchema(k, func(name string, schema map[string]json.RawMessage) {
		var properties map[string]json.RawMessage
		if err := json.Unmarshal(schema["properties"], &properties); err != nil || properties == nil {
			k.Errorf("%s: properties %s", name, schema["properties"])
		}
	})
}

// L6: hosts refuse references.
func noReferences(k *room) {
	eachSchema(k, func(name string, schema map[string]json.RawMessage) {
		all, err := json.Marshal(schema)
		if err != nil {
			k.Fatal(err)
		}
		for _, word := range []string{`"$schema"`, `"$defs"`, `"$ref"`, `"definitions"`, `"$id"`} {
			if bytes.Contains(all, []byte(word)) {
				k.Errorf("%s holds %s", name, word)
			}
		}
	})
}

// M1: a web page cannot reach the endpoint through a visitor's browser.
func foreignHostAndOrigin(k *room) {
	good := encode(k, map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
	for _, c := range []struct {
		name   string
		header http.Header
		status int
	}{
		{"origin of another site", http.Header{"Origin": {"https://evil.test"}}, http.StatusForbidden},
		{"host of another site", http.Header{"Host": {"evil.test"}}, http.StatusForbidden},
		{"no origin", nil, http.StatusOK},
	} {
		if status, _, body := post(k.T, k.client, good, c.header); status != c.status {
			k.Errorf("%s: HTTP %d %s", c.name, status, body)
		}
	}
	if !bytes.Contains([]byte(k.d.URL()), []byte("//127.0.0.1:")) {
		k.Errorf("it listens on %s", k.d.URL())
	}
}

// M6: a token in the query opens nothing and is not logged.
func noSecretInTheAddress(k *room) {
	secret := strings.TrimPrefix(k.d.Authorization(), "Bearer ")
	for _, path := range []string{"/mcp?token=", "/mcp?access_token=", "/api/status?token=", "/?token=", "/metrics?authorization=Bearer%20"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			status, body := request(k.T, method, k.d.Base()+path+secret, nil)
			if status < 400 {
				k.Errorf("%s %s: HTTP %d", method, path, status)
			}
			if strings.Contains(body, secret) {
				k.Errorf("%s %s: the answer repeats the token", method, path)
			}
		}
	}
	if strings.Contains(k.d.Log(), secret) {
		k.Error("the log holds the token")
	}
}

// M8: there is no roots policy that a link could slip through. Every answer to workspace_open says so, and a link
// that leads out is followed by reading and writing alike.
func noSandboxIsClaimed(k *room) {
	r := k.client.OK(k, "workspace_open", daemon.Args{"cwd": k.dir})
	access, _ := r.Structured["access"].(map[string]any)
	if access["cwd_is_sandbox"] != false {
		k.Errorf("access is %v", access)
	}
	outside := filepath.Join(realDir(k), "outside.txt")
	put(k, outside, "outside\n")
	if err := os.Symlink(outside, k.path("link")); err != nil {
		k.Fatal(err)
	}
	read := k.call("read", daemon.Args{"path": "link"})
	if read.IsError || read.Text() != "outside\n" {
		k.Errorf("read: %s", read.Text())
	}
	written := k.call("write", daemon.Args{"path": "link", "content": "changed\n", "expected_revision": read.String("revision")})
	if written.IsError || text(k, outside) != "changed\n" {
		k.Errorf("write: %s", written.Text())
	}
}

// TestK1Restart restarts the daemon between two calls of a client that sends its old session id and does nothing
// else.
func TestK1Restart(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	for _, end := range []func() error{d.Kill, func() error { _, err := d.Stop(); return err }} {
		client := d.Client()
		if _, err := client.Initialize(bounded(t, time.Minute), "2025-11-25"); err != nil {
			t.Fatal(err)
		}
		read := daemon.Args{"workspace_id": client.Open(t, gitProject(t)), "path": "README.md"}
		session := client.Session()
		if err := end(); err != nil {
			t.Fatal(err)
		}
		d.Revive(t)
		if r := client.OK(t, "read", read); r.Text() != "# Demo\n" || client.Session() != session {
			t.Errorf("after the restart: %q in session %q", r.Text(), client.Session())
		}
	}
}

// TestM4TokenIsNowhere runs the daemon with its most talkative log, shows it right and wrong tokens, lets it crash,
// and looks for the tokens in all that is left.
func TestM4TokenIsNowhere(t *testing.T) {
	d := daemon.Start(t, daemon.Options{Args: []string{"--log-level", "debug"}})
	client := d.Client()
	workspace := client.Open(t, gitProject(t))
	right := strings.TrimPrefix(d.Authorization(), "Bearer ")
	wrong := "wrong" + right[5:len(right)-5] + "wrong"
	for _, bad := range []string{"Bearer " + wrong, wrong, "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+wrong))} {
		if status, _, body := post(t, client, initializeRequest, http.Header{"Authorization": {bad}}); status != http.StatusUnauthorized || bytes.Contains(body, []byte(wrong)) {
			t.Errorf("a wrong token: HTTP %d %s", status, body)
		}
	}
	client.OK(t, "read", daemon.Args{"workspace_id": workspace, "path": "README.md"})
	client.Must(t, "read", daemon.Args{"workspace_id": workspace, "path": "missing"})
	held, cancel := context.WithCancel(bounded(t, time.Minute))
	defer cancel()
	go func() { // a request in progress, so that the crash output shows it
		_, _ = client.Call(held, "bash", daemon.Args{"workspace_id": workspace, "request_key": daemon.Key(), "command": "touch held; sleep 60"})
	}()
	if err := d.Signal(syscall.SIGQUIT); err != nil { // Go's own crash: all goroutines on standard error
		t.Fatal(err)
	}
	if _, err := d.Wait(bounded(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	log := d.Log()
	if !strings.Contains(log, "goroutine 1 ") || !strings.Contains(log, "Call answered") {
		t.Fatalf("neither a crash nor details in the log of %d bytes", len(log))
	}
	for name, secret := range map[string]string{"right": right, "wrong": wrong} {
		notThere(t, "the log", []byte(log), name, secret)
		err := filepath.WalkDir(d.StateDir(), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || path == d.TokenFile() {
				return err
			}
			b, err := os.ReadFile(path)
			notThere(t, path, b, name, secret)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// notThere looks for a token as it is and encoded.
func notThere(t *testing.T, where string, b []byte, name, secret string) {
	t.Helper()
	for form, s := range map[string]string{
		"plain": secret, "base64": base64.StdEncoding.EncodeToString([]byte(secret)), "base64 with scheme": base64.StdEncoding.EncodeToString([]byte("Bearer " + secret)),
		"hex": hex.EncodeToString([]byte(secret)),
	} {
		if bytes.Contains(b, []byte(strings.TrimRight(s, "="))) {
			t.Errorf("%s holds the %s token, %s", where, name, form)
		}
	}
}
