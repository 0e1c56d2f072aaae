package storage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/ristretto/v2/z"
	"github.com/stretchr/testify/require"
)

// tableFile makes a database with a table of some blocks and returns the path of the table.
func tableFile(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(inMemory(t), "db")
	db, err := Open(Options{Dir: dir})
	require.NoError(t, err)
	st := openStore(t, db)
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		pod := newPod(fmt.Sprintf("n%02d", n))
		pod.Annotations = map[string]string{"filler": strings.Repeat(fmt.Sprint(random.Uint64()), 1+random.IntN(60))}
		require.NoError(t, st.Create(context.Background(), podKey(pod.Name), pod, nil, 0))
	}
	require.NoError(t, db.Close())
	return newestFile(t, dir, ".sst")
}

// byBadger is how badger checks a table.
func byBadger(path string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	file, err := z.OpenMmapFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	t, err := table.OpenTable(file, table.Options{BlockSize: 4 << 10, Compression: options.Snappy, ChkMode: options.OnTableRead})
	if err != nil {
		return err
	}
	return t.Close(-1)
}

// TestFlippedByteOfATableIsFound: our verification by itself finds a change of any byte where badger's does. The only
// ones that neither finds change nothing: a repetition can be packed in more than one way.
func TestFlippedByteOfATableIsFound(t *testing.T) {
	t.Parallel()
	path := tableFile(t)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Greater(t, len(content), 4000)
	var scratch []byte
	require.True(t, sound(content, options.Snappy, &scratch))
	require.False(t, sound(content, options.None, &scratch))
	require.NoError(t, checkTable(path, options.Snappy, &scratch))
	random := rand.New(rand.NewPCG(3, 4))
	for at := range content {
		if at < len(content)-200 && random.IntN(8) > 0 {
			continue
		}
		spoiled := append([]byte(nil), content...)
		spoiled[at] ^= byte(1 + random.IntN(255))
		require.NoError(t, os.WriteFile(path, spoiled, 0o600))
		if checkFooter(path) != nil {
			continue
		}
		if soundOrPanics(spoiled, &scratch) {
			require.NoError(t, byBadger(path), "byte %d of %d was changed", at, len(content))
		}
	}
	for _, size := range []int{0, 3, 4, 8, 20, len(content) / 2, len(content) - 1} {
		require.NoError(t, os.WriteFile(path, content[:size], 0o600))
		require.Error(t, checkTable(path, options.Snappy, &scratch), "%d of %d bytes", size, len(content))
	}
}

// soundOrPanics is sound; a panic is no verdict that it is.
func soundOrPanics(file []byte, scratch *[]byte) (ok bool) {
	defer func() { _ = recover() }()
	return sound(file, options.Snappy, scratch)
}
