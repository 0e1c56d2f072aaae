package walk

import (
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rigbridge/rigbridge/controllers/engine/ignore"
)

// found is an entry that a search has to do with.
type found struct {
	Item
	wanted bool
	enter  bool
	data   any
}

// read lists a directory and returns the slots that take its place.
func (w *walker[R]) read(wk *Worker, d *Dir) ([]*slot[R], error) {
	fd, err := openDir(d.Path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if !d.admit(fd) {
		return nil, nil
	}
	if err := wk.listing.read(fd, wk.Stopped); err != nil {
		return nil, err
	}
	entries := w.choose(wk, d)
	slices.SortFunc(entries, func(a, b found) int { return strings.Compare(a.Name, b.Name) })
	return w.arrange(wk, d, entries), nil
}

func openDir(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// admit compares the device with that of the directory above and refuses pseudo file systems below it.
func (d *Dir) admit(fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return false
	}
	device := uint64(st.Dev)
	if d.known && device != d.device && isPseudo(fd) {
		return false
	}
	d.device, d.known = device, true
	return true
}

// choose picks the entries of the worker's listing that are wanted or lead further down.
func (w *walker[R]) choose(wk *Worker, d *Dir) []found {
	var has ignore.Present
	if own := d.scope.Own(); d.scope != nil {
		wk.listing.each(func(name string, _ Type) {
			if name[0] == '.' {
				has.Note(name, own)
			}
		})
		d.scope = d.scope.Enter(d.Path, has)
	}
	var out []found
	wk.listing.each(func(name string, t Type) {
		if name == ignore.GitDir && !w.o.Git {
			return
		}
		if t == unknown {
			t = lookUp(d.Path + "/" + name)
		}
		f := found{Item: Item{Name: name, Type: t}, wanted: w.v.Wants(d, name, t)}
		if t == Directory {
			f.data, f.enter = w.v.Enter(d, name)
		}
		switch {
		case !f.wanted && !f.enter:
		case d.scope.Hides(d.Path, name, t == Directory):
			if w.o.Hidden > 0 {
				w.hideEntry(d, f)
			}
		default:
			out = append(out, f)
		}
	})
	for i := range out {
		out[i].Name = strings.Clone(out[i].Name) // the listing as a whole need not stay
	}
	return out
}

// hideEntry reports an ignored entry as the seeds of a walk that obeys no ignore files.
func (w *walker[R]) hideEntry(d *Dir, f found) {
	free := *d
	free.scope = nil
	f.Name = strings.Clone(f.Name)
	if f.wanted {
		w.hide(Seed{Dir: &free, Items: []Item{f.Item}})
	}
	if f.enter {
		w.hide(Seed{Dir: free.child(f.Name, f.data)})
	}
}

// arrange makes slots of sorted entries: batches of wanted ones, interrupted by the directories to read.
func (w *walker[R]) arrange(wk *Worker, d *Dir, entries []found) []*slot[R] {
	var out []*slot[R]
	var batch []Item
	flush := func() {
		if len(batch) == 0 {
			return
		}
		s := &slot[R]{dir: d, items: batch}
		if w.o.Batch == 0 {
			s.results, s.done, s.items = w.v.Visit(wk, d, batch), true, nil
		}
		if !s.done || len(s.results) > 0 {
			out = append(out, s)
		}
		batch = nil
	}
	for _, f := range entries {
		if f.wanted {
			if batch = append(batch, f.Item); len(batch) == w.o.Batch {
				flush()
			}
		}
		if f.enter {
			flush()
			out = append(out, &slot[R]{dir: d.child(f.Name, f.data)})
		}
	}
	flush()
	return out
}
