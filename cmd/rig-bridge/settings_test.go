package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

const sampleSettings = "../../config/settings/config.yaml"

// The settings that we document are all there are, at their defaults, each with its flag and its variable.
func TestDocumentedSettings(t *testing.T) {
	b, err := os.ReadFile(sampleSettings)
	if err != nil {
		t.Fatal(err)
	}
	var file settings
	if err := yaml.UnmarshalStrict(b, &file); err != nil {
		t.Fatal(err)
	}
	if want := (settings{Port: defaultPort, LogLevel: "info"}); !reflect.DeepEqual(file, want) {
		t.Errorf("the file says %+v, the defaults are %+v", file, want)
	}
	var given map[string]any
	if err := yaml.Unmarshal(b, &given); err != nil {
		t.Fatal(err)
	}
	c := &cobra.Command{}
	(&settings{}).flags(c)
	for f := range reflect.TypeFor[settings]().Fields() {
		key := f.Tag.Get("json")
		if key == "" {
			continue
		}
		if _, ok := given[key]; !ok {
			t.Errorf("%s is not in the file", key)
		}
		flag := kebab(key)
		if c.Flag(flag) == nil {
			t.Errorf("%s has no flag", key)
			continue
		}
		for _, name := range []string{"--" + flag, "RIG_BRIDGE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))} {
			if !strings.Contains(string(b), name) {
				t.Errorf("the file does not tell of %s", name)
			}
		}
	}
}

// kebab turns stateDir into state-dir.
func kebab(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// complete runs the settings as serve would with these arguments.
func complete(t *testing.T, args ...string) (*settings, error) {
	t.Helper()
	s := &settings{}
	c := &cobra.Command{}
	s.flags(c)
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return s, s.complete(c)
}

// freshAccount is an account without settings.
func freshAccount(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	for _, name := range []string{"RIG_BRIDGE_PORT", "MCP_PORT", "RIG_BRIDGE_STATE_DIR", "RIG_BRIDGE_TOKEN_FILE", "RIG_BRIDGE_LOG_LEVEL", "XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", home)
	return home
}

func TestSettingsPrecedence(t *testing.T) {
	home := freshAccount(t)
	s, err := complete(t)
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(home, ".local", "state", "rig-bridge")
	if s.Port != defaultPort || s.StateDir != state || s.TokenFile != filepath.Join(state, "http-token") || s.explicitToken || s.LogLevel != "info" {
		t.Errorf("defaults: %+v", s)
	}
	conf := filepath.Join(home, ".config", "rig-bridge")
	if err := os.MkdirAll(conf, 0o700); err != nil {
		t.Fatal(err)
	}
	text := "port: 1111\nstateDir: /file/state\ntokenFile: /file/token\nlogLevel: debug\n"
	if err := os.WriteFile(filepath.Join(conf, "config.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = complete(t); err != nil || s.Port != 1111 || s.StateDir != "/file/state" || s.TokenFile != "/file/token" || !s.explicitToken || s.LogLevel != "debug" {
		t.Errorf("from the file: %+v, %v", s, err)
	}
	t.Setenv("RIG_BRIDGE_PORT", "2222")
	t.Setenv("RIG_BRIDGE_STATE_DIR", "/env/state")
	t.Setenv("RIG_BRIDGE_TOKEN_FILE", "/env/token")
	t.Setenv("RIG_BRIDGE_LOG_LEVEL", "info")
	if s, err = complete(t); err != nil || s.Port != 2222 || s.StateDir != "/env/state" || s.TokenFile != "/env/token" || s.LogLevel != "info" {
		t.Errorf("from the environment: %+v, %v", s, err)
	}
	s, err = complete(t, "--port", "3333", "--state-dir", "/flag/state", "--token-file", "/flag/token", "--log-level", "debug")
	if err != nil || s.Port != 3333 || s.StateDir != "/flag/state" || s.TokenFile != "/flag/token" || s.LogLevel != "debug" {
		t.Errorf("from flags: %+v, %v", s, err)
	}
}

func TestBadSettings(t *testing.T) {
	for name, text := range map[string]string{"an unknown key": "prot: 1\n", "no number": "port: many\n", "a bad port": "port: 70000\n", "an unknown level": "logLevel: loud\n"} {
		state := filepath.Join(freshAccount(t), "state")
		if err := os.MkdirAll(state, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(state, "config.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := complete(t, "--state-dir", state); err == nil {
			t.Errorf("%s gives %+v", name, s)
		}
	}
	freshAccount(t)
	t.Setenv("RIG_BRIDGE_PORT", "x")
	if _, err := complete(t); err == nil {
		t.Error("a port that is no number is taken from the environment")
	}
}
