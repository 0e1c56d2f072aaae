package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestCollectionsWaitForTheStart: the pace is set before the packages that allocate most are initialized.
func TestCollectionsWaitForTheStart(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	at := func(name string) int { return strings.Index(said.String(), "init "+module+name+" ") }
	own := at("cmd/rig-bridge/startgc")
	if own < 0 {
		t.Fatalf("it is not initialized:\n%s", &said)
	}
	for _, name := range []string{"github.com/santhosh-tekuri/jsonschema/v6", "k8s.io/client-go/kubernetes/scheme", "k8s.io/client-go/kubernetes/fake"} {
		if other := strings.Index(said.String(), "init "+name+" "); other >= 0 && other < own {
			t.Errorf("%s comes first", name)
		}
	}
}

const module = "github.com/rigbridge/rigbridge/"
