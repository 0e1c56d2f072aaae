package storage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// oldDatabase is a database as version 1 of the layout left it when its process
// was killed: objects "table00" to "table29" in a table file, "log00" to "log09"
// in a log only, "table00" deleted and "table01" relabelled in the log. A change
// of the layout adds a file; this one must open for ever. It was made with
//
//	STORAGE_TEST_ROLE=fixture STORAGE_TEST_DIR=testdata/database-v1.tar.gz go test
const oldDatabase = "testdata/database-v1.tar.gz"

func TestOldDatabaseOpens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, unpack(oldDatabase, dir))
	db, err := Open(Options{Dir: dir})
	require.NoError(t, err)
	defer db.Close()
	require.Empty(t, db.Recovery().Sentences)
	st := openStore(t, db)
	checkIndex(t, openStore(t, db, withDrowsy), true)
	var want []string
	for n := range 10 {
		want = append(want, fmt.Sprintf("log%02d", n))
	}
	for n := 1; n < 30; n++ {
		want = append(want, fmt.Sprintf("table%02d", n))
	}
	require.Equal(t, want, names(list(t, st, storage.ListOptions{})))
	pod, err := get(st, "table01")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"n": "7"}, pod.Labels)
	require.EqualValues(t, "11111111-2222-3333-4444-555555555555", pod.UID)
	require.EqualValues(t, 43, revisionOf(t, pod))
	require.GreaterOrEqual(t, create(t, st, "new"), uint64(10031), "the mark says 10031")
}

// makeFixture writes oldDatabase.
func makeFixture(path string) error {
	dir, err := os.MkdirTemp("", "fixture")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	write := func(prefix string, n int) (*DB, *store, error) {
		db, err := Open(Options{Dir: dir})
		if err != nil {
			return nil, nil, err
		}
		cfg := podConfig()
		st, err := db.newStore(cfg)
		for i := 0; i < n && err == nil; i++ {
			name := fmt.Sprintf("%s%02d", prefix, i)
			err = st.Create(context.Background(), podKey(name), newPod(name), nil, 0)
		}
		return db, st, err
	}
	db, _, err := write("table", 30)
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	db, st, err := write("log", 10)
	if err != nil {
		return err
	}
	err = st.Delete(context.Background(), podKey("table00"), &example.Pod{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
	if err != nil {
		return err
	}
	if _, err := tryLabel(st, "table01", 7); err != nil {
		return err
	}
	return errors.Join(pack(dir, path), db.Close())
}

// pack writes the files of dir to a compressed archive, without the unused
// space at the end of logs and without the pid file.
func pack(dir, path string) error {
	var archive bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&archive, gzip.BestCompression)
	if err != nil {
		return err
	}
	out := tar.NewWriter(zipped)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		switch filepath.Ext(e.Name()) {
		case ".mem", ".vlog":
			content = append(bytes.TrimRight(content, "\x00"), make([]byte, 64)...)
		}
		if e.Name() == pidFile {
			continue
		}
		if err := out.WriteHeader(&tar.Header{Name: e.Name(), Mode: 0o600, Size: int64(len(content))}); err != nil {
			return err
		}
		if _, err := out.Write(content); err != nil {
			return err
		}
	}
	if err := errors.Join(out.Close(), zipped.Close()); err != nil {
		return err
	}
	return os.WriteFile(path, archive.Bytes(), 0o644)
}

func unpack(path, dir string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	in := tar.NewReader(zipped)
	for {
		header, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(header.Name)), content, 0o600); err != nil {
			return err
		}
	}
}
