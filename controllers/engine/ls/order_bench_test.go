package ls

import (
	"fmt"
	"io/fs"
	"slices"
	"testing"
)

type name string

func (n name) Name() string               { return string(n) }
func (n name) IsDir() bool                { return false }
func (n name) Type() fs.FileMode          { return 0 }
func (n name) Info() (fs.FileInfo, error) { return nil, fs.ErrInvalid }

func BenchmarkFirstOf100000(b *testing.B) {
	entries := make([]fs.DirEntry, 100_000)
	for i := range entries {
		entries[i] = name(fmt.Sprintf("some_file_name_%06d.txt", i*7919%100_000))
	}
	b.ReportAllocs()
	for b.Loop() {
		s := newSelection(500)
		for part := range slices.Chunk(entries, batch) {
			s.add(part)
		}
		if got := s.first(); len(got) != 500 || got[499].Name() != "some_file_name_000499.txt" {
			b.Fatal("wrong selection")
		}
	}
}
