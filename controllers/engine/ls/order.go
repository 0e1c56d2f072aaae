package ls

import (
	"bytes"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
)

// selection keeps the first entries of a directory in the order of a listing: by the root collation of the
// lower-cased names, names that are equal there in byte order. (The library's tables are of an older Unicode:
// characters that came later, such as new emoji, are sorted behind all others.) Its memory depends on the limit
// alone.
type selection struct {
	limit int
	total int // entries met
	root  *collate.Collator
	keys  collate.Buffer
	kept  []keyedEntry
	last  *keyedEntry // entries behind it are out, once limit entries are known
}

// keyedEntry is an entry with what it is sorted by.
type keyedEntry struct {
	fs.DirEntry
	key []byte
}

func newSelection(limit int) *selection {
	return &selection{limit: limit, root: collate.New(language.Und)}
}

// add takes the next entries.
func (s *selection) add(entries []fs.DirEntry) {
	s.total += len(entries)
	for _, e := range entries {
		s.keys.Reset()
		k := keyedEntry{e, s.root.KeyFromString(&s.keys, strings.ToLower(e.Name()))}
		if s.last != nil && compare(k, *s.last) > 0 {
			continue
		}
		k.key = bytes.Clone(k.key)
		s.kept = append(s.kept, k)
	}
	if len(s.kept) > 2*s.limit+batch {
		s.prune()
	}
}

// prune sorts what is kept and lets go of what is beyond the limit.
func (s *selection) prune() {
	slices.SortFunc(s.kept, compare)
	if len(s.kept) >= s.limit {
		clear(s.kept[s.limit:])
		s.kept = s.kept[:s.limit]
		last := s.kept[s.limit-1]
		s.last = &last
	}
}

// first returns the selected entries in order.
func (s *selection) first() []keyedEntry {
	s.prune()
	return s.kept
}

func compare(a, b keyedEntry) int {
	if d := bytes.Compare(a.key, b.key); d != 0 {
		return d
	}
	return strings.Compare(a.Name(), b.Name())
}
