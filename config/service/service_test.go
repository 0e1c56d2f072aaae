package service

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"howett.net/plist"
)

// The unit of packages is what the template says.
func TestPackagedUnit(t *testing.T) {
	want, err := Service{Program: "/usr/bin/rig-bridge", Args: []string{"serve"}}.Systemd()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(Unit)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("rig-bridge.service should be:\n%s", want)
	}
}

// awkward are values with everything that means something to systemd or XML.
var awkward = []string{
	"plain", "", " ", "two words", "$HOME", "${HOME}", "$$", "%h", "%%", "100%", `"`, `'`, `\`, `a\`, `\x41`, `"a" 'b'`, ";", ";;",
	"#", "-", "@", "<a>&amp;]]>", "ü €", "=", "a=b", "~", "*", "`id`", "|", `\"`, "%", "$",
}

// systemd takes the unit without a word about it, whatever is in the values.
func TestSystemdAcceptsTheUnit(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("needs systemd-analyze: hack/test installs it")
	}
	dir := filepath.Join(t.TempDir(), `we ird $HOME %h {x} #;ü`)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "rig-bridge")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := Service{Program: program, Args: awkward, Umask: "0027", Managed: true}
	for i, value := range awkward {
		s.Variables = append(s.Variables, Variable{fmt.Sprintf("V%d", i), value})
	}
	unit, err := s.Systemd()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"rendered": string(unit), "broken": strings.Replace(string(unit), "KillMode=process", "KillMood=process", 1)} {
		file := filepath.Join(t.TempDir(), Unit)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		complaints, err := Verify(t.Context(), file)
		if err != nil {
			t.Skipf("systemd-analyze does not work here: %v", err)
		}
		if (complaints == "") != (name == "rendered") {
			t.Errorf("%s: systemd says: %s", name, complaints)
		}
	}
}

func TestRefusedValues(t *testing.T) {
	good := Service{Program: "/bin/rig-bridge"}
	for name, s := range map[string]Service{
		"relative program":         {Program: "rig-bridge"},
		"line break in program":    {Program: "/bin/a\nb"},
		"line break in argument":   {Program: good.Program, Args: []string{"x", "a\nExecStartPre=/bin/evil"}},
		"carriage return":          {Program: good.Program, Args: []string{"a\rb"}},
		"NUL in a variable":        {Program: good.Program, Variables: []Variable{{"PATH", "/a\x00b"}}},
		"not UTF-8":                {Program: good.Program, Variables: []Variable{{"PATH", "/a\xff"}}},
		"line break in home":       {Program: good.Program, Home: "/a\n"},
		"escape in the log's name": {Program: good.Program, LogFile: "/a\x1b"},
	} {
		if _, err := s.Systemd(); err == nil {
			t.Errorf("%s: in a unit", name)
		}
		if _, err := s.Launchd(); err == nil {
			t.Errorf("%s: in an agent", name)
		}
	}
	for _, program := range []string{`/a"b/rig-bridge`, `/a'b/rig-bridge`, `/a\b/rig-bridge`} {
		if _, err := (Service{Program: program}).Systemd(); err == nil || !strings.Contains(err.Error(), "another directory") {
			t.Errorf("%s: %v", program, err)
		}
	}
}

// launchd knows these keys and types, of launchd.plist(5); the agent has no other, and its values arrive.
func TestLaunchdSchema(t *testing.T) {
	known := map[string]reflect.Kind{
		"Label": reflect.String, "ProgramArguments": reflect.Slice, "EnvironmentVariables": reflect.Map, "WorkingDirectory": reflect.String,
		"StandardErrorPath": reflect.String, "Umask": reflect.String, "RunAtLoad": reflect.Bool, "KeepAlive": reflect.Map, "ThrottleInterval": reflect.Uint64,
		"ExitTimeOut": reflect.Uint64, "AbandonProcessGroup": reflect.Bool, "ProcessType": reflect.String,
	}
	args := slices.Clone(awkward)
	s := Service{Program: "/opt/a <b>/rig-bridge", Args: args, Umask: "0022", Home: "/Users/ü & co", LogFile: "/Users/x/log"}
	for i, value := range awkward {
		s.Variables = append(s.Variables, Variable{fmt.Sprintf("V%d", i), value})
	}
	text, err := s.Launchd()
	if err != nil {
		t.Fatal(err)
	}
	var agent map[string]any
	if format, err := plist.Unmarshal(text, &agent); err != nil || format != plist.XMLFormat {
		t.Fatalf("format %d: %v\n%s", format, err, text)
	}
	for key, value := range agent {
		if kind, ok := known[key]; !ok || reflect.TypeOf(value).Kind() != kind {
			t.Errorf("%s is a %T", key, value)
		}
	}
	var got struct {
		Label            string
		ProgramArguments []string
		Variables        map[string]string `plist:"EnvironmentVariables"`
		WorkingDirectory string
		KeepAlive        map[string]bool
	}
	if _, err := plist.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Label != Label || !slices.Equal(got.ProgramArguments, append([]string{s.Program}, args...)) || got.WorkingDirectory != s.Home || got.KeepAlive["SuccessfulExit"] {
		t.Errorf("%+v", got)
	}
	for _, v := range s.Variables {
		if got.Variables[v.Name] != v.Value {
			t.Errorf("%s is %q, want %q", v.Name, got.Variables[v.Name], v.Value)
		}
	}
	s.Variables, s.Umask = nil, ""
	if text, err = s.Launchd(); err != nil || strings.Contains(string(text), "EnvironmentVariables") || strings.Contains(string(text), "Umask") {
		t.Errorf("%v\n%s", err, text)
	}
}

// The property list follows Apple's grammar.
func TestLaunchdGrammar(t *testing.T) {
	xmllint, err := exec.LookPath("xmllint")
	if err != nil {
		t.Skip("needs xmllint: hack/test installs it")
	}
	text, err := Service{Program: "/opt/rig-bridge", Args: awkward, Umask: "0022", Home: "/Users/x", LogFile: "/Users/x/log",
		Variables: []Variable{{"PATH", "/a:/b"}}}.Launchd()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), Label+".plist")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(xmllint, "--nonet", "--noout", "--dtdvalid", "testdata/PropertyList-1.0.dtd", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
