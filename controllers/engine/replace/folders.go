package replace

import "sync"

// folders shares the syncs of a folder among the replacements in it: one that comes while a sync runs joins the
// next, which covers all that were renamed before it began. The zero value is ready.
type folders struct {
	mu     sync.Mutex
	byPath map[string]*folder
}

// folder is one that somebody wants synced.
type folder struct {
	users   int          // who is in sync
	running *folderRound // or the last that ran
	next    *folderRound // who comes now joins it; nil: begins one
}

type folderRound struct {
	done chan struct{}
	err  error
}

// sync returns when a call of fn that began after sync was called has ended, with its error.
func (fs *folders) sync(path string, fn func() error) error {
	f, round, first := fs.join(path)
	defer fs.leave(path, f)
	if !first {
		<-round.done
		return round.err
	}
	if f.running != nil { // nobody else changes it until this round is over
		<-f.running.done
	}
	fs.mu.Lock()
	f.running, f.next = round, nil
	fs.mu.Unlock()
	round.err = fn()
	close(round.done)
	return round.err
}

// join enters the round that has not begun, and says whether the caller is the one to run it.
func (fs *folders) join(path string) (f *folder, round *folderRound, first bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.byPath == nil {
		fs.byPath = map[string]*folder{}
	}
	if f = fs.byPath[path]; f == nil {
		f = &folder{}
		fs.byPath[path] = f
	}
	f.users++
	if f.next == nil {
		f.next, first = &folderRound{done: make(chan struct{})}, true
	}
	return f, f.next, first
}

func (fs *folders) leave(path string, f *folder) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.users--; f.users == 0 {
		delete(fs.byPath, path)
	}
}
