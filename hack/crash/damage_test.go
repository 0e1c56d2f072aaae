package crash

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestN3DamagedLog kills the daemon during heavy writes and damages the end of its newest log: bytes are cut off,
// cleared or turned. It starts, says what was lost where that can be seen, and still has the receipts from before.
func TestN3DamagedLog(t *testing.T) {
	t.Parallel()
	for _, damage := range []struct {
		name  string
		does  func(log []byte, random *rand.Rand) []byte
		shows bool // the damage can be told from a log that ends here
	}{
		{"cut", func(log []byte, random *rand.Rand) []byte { return log[:len(log)-1-random.IntN(4000)] }, false},
		{"cleared", func(log []byte, random *rand.Rand) []byte {
			clear(log[len(log)-1-random.IntN(4000):])
			return log
		}, false},
		{"a byte turned", func(log []byte, random *rand.Rand) []byte {
			log[len(log)-1-random.IntN(4000)] ^= 0x55
			return log
		}, true},
	} {
		t.Run(damage.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			c := h.begin(t)
			dir := realDir(t)
			workspace := c.Open(t, dir)
			for round := range length(1, 3, 10) {
				seed := rand.Uint64()
				old := command(workspace, fmt.Sprintf("old-%d", round))
				c.OK(t, "bash", old)
				writeHeavily(t, h, workspace, round)
				damageNewestLog(t, h, func(log []byte) []byte { return damage.does(log, rand.New(rand.NewPCG(seed, 0))) })
				said := len(h.daemon.Log())
				h.daemon.Revive(t)
				if said := h.daemon.Log()[said:]; damage.shows && !strings.Contains(said, "Repaired the object store") && !strings.Contains(said, "Store recovered") {
					t.Errorf("seed %d: the daemon does not say what was lost:\n%s", seed, said)
				}
				if r := c.OK(t, "bash", old); !r.Replayed() {
					t.Errorf("seed %d: an old receipt was lost: %s", seed, r.Raw)
				}
				if n := lines(t, filepath.Join(dir, "log"))[old["request_key"].(string)]; n != 1 {
					t.Errorf("seed %d: %d effects", seed, n)
				}
				c.OK(t, "bash", command(workspace, fmt.Sprintf("new-%d", round)))
			}
		})
	}
}

func command(workspace, key string) daemon.Args {
	return daemon.Args{"workspace_id": workspace, "request_key": key, "command": "echo " + key + " >> log"}
}

// writeHeavily has clients write receipts until the daemon is killed under them.
func writeHeavily(t *testing.T, h *house, workspace string, round int) {
	t.Helper()
	ctx := bounded(t, time.Minute)
	var wg sync.WaitGroup
	var written sync.WaitGroup
	written.Add(40) // more than the damage reaches
	for n := range 4 {
		c := h.daemon.Client()
		wg.Go(func() {
			for m := 0; ; m++ {
				_, err := c.Call(ctx, "bash", command(workspace, fmt.Sprintf("heavy-%d-%d-%d", round, n, m)))
				if m < 10 {
					written.Done()
				}
				if err != nil && m >= 10 {
					return
				}
			}
		})
	}
	written.Wait()
	h.kill(t)
	wg.Wait()
}

// damageNewestLog changes the part of the newest log that is in use; the zeros after it stay.
func damageNewestLog(t *testing.T, h *house, change func([]byte) []byte) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(h.state, "store", "*.mem"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no log below %s: %v", h.state, err)
	}
	newest := logs[len(logs)-1] // five digits, so the order of names is that of numbers
	all, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	log := bytes.TrimRight(all, "\x00")
	if len(log) < 8000 {
		t.Fatalf("%s holds only %d bytes", newest, len(log))
	}
	log = change(bytes.Clone(log))
	if err := os.WriteFile(newest, append(log, make([]byte, len(all)-len(log))...), 0o600); err != nil {
		t.Fatal(err)
	}
}
