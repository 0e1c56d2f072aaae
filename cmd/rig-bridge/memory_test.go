package main

import (
	"runtime/metrics"
	"testing"
	"time"

	e2e "github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestMemoryIsGivenBackAtRest: after the start and after each piece of work the heap is collected once more than the
// work itself asks for, and what it does not use goes back to the system.
func TestMemoryIsGivenBackAtRest(t *testing.T) {
	before := given()
	_, c := running(t, &settings{})
	w := open(t, c, t.TempDir())
	awaitGiven(t, before)
	before = given()
	call(t, c, "ls", e2e.Args{"workspace_id": w, "path": "."})
	awaitGiven(t, before)
}

// given counts the collections that somebody asked for; giving memory back begins with one.
func given() uint64 {
	sample := []metrics.Sample{{Name: "/gc/cycles/forced:gc-cycles"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func awaitGiven(t *testing.T, before uint64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); given() == before; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("memory was not given back after a minute of rest")
		}
	}
}
