package operation

import (
	"container/list"
	"errors"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/replace"
	"github.com/rigbridge/rigbridge/controllers/engine/textdiff"
)

// Bounds of the texts that are remembered, in bytes.
const (
	// maxKnown bounds one text, and a difference that is shown.
	maxKnown = 50 << 10
	// maxAllKnown bounds all of them; what was not used for longest makes room.
	maxAllKnown = 4 << 20
)

// known are the texts that the callers of workspaces last read or wrote whole: in memory only. From them a
// revision conflict can say what has changed. The zero value is ready.
type known struct {
	mu    sync.Mutex
	bytes int
	order list.List // *knownText, the latest used first
	byKey map[knownKey]*list.Element
}

type knownKey struct{ workspace, path string }

type knownText struct {
	knownKey
	text string
}

// whole returns the text of a file of that revision if what its reader was shown, without the end of the last line,
// is the whole of it.
func whole(shown, revision string) (string, bool) {
	switch {
	case len(shown) > maxKnown || !utf8.ValidString(shown):
		return "", false
	case replace.RevisionOf([]byte(shown)) == revision:
		return shown, true
	case replace.RevisionOf([]byte(shown+"\n")) == revision:
		return shown + "\n", true
	}
	return "", false
}

// put remembers the text of a file; the path is canonical.
func (k *known) put(workspace, path, text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byKey == nil {
		k.byKey = map[knownKey]*list.Element{}
	}
	key := knownKey{workspace, path}
	k.drop(k.byKey[key])
	k.byKey[key] = k.order.PushFront(&knownText{key, text})
	for k.bytes += len(text); k.bytes > maxAllKnown; {
		k.drop(k.order.Back())
	}
}

func (k *known) drop(e *list.Element) {
	if e == nil {
		return
	}
	t := k.order.Remove(e).(*knownText)
	k.bytes -= len(t.text)
	delete(k.byKey, t.knownKey)
}

func (k *known) get(workspace, path string) (string, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.byKey[knownKey{workspace, path}]
	if e == nil {
		return "", false
	}
	k.order.MoveToFront(e)
	return e.Value.(*knownText).text, true
}

// learn remembers what a call that succeeded has shown to its caller or taken from it.
func (k *known) learn(op *v1alpha1.Operation, res *engine.Result, written []byte) {
	ws := op.Spec.WorkspaceRef.Name
	switch {
	case written != nil:
		if len(written) <= maxKnown && utf8.Valid(written) {
			k.put(ws, res.Path, string(written))
		}
	case op.Spec.Tool == v1alpha1.ToolRead && len(res.Images) == 0:
		text, ok := whole(res.Text, res.Revision)
		if !ok {
			return
		}
		if path, err := engine.Canonical(res.Path); err == nil {
			k.put(ws, path, text)
		}
	}
}

// explain adds to a revision conflict what has changed since the caller knew the file, if that can be told.
func (k *known) explain(op *v1alpha1.Operation, err error) error {
	var e *engine.Error
	if !errors.As(err, &e) || e.Reason != engine.RevisionConflict {
		return err
	}
	before, ok := k.get(op.Spec.WorkspaceRef.Name, e.Path)
	if !ok {
		return err
	}
	now, ok := smallText(e.Path)
	if !ok || replace.RevisionOf([]byte(now)) != e.CurrentRevision {
		return err
	}
	told := *e
	if before == now {
		told.Message += " The file is as it was when you last read or wrote it here: only the revision in the call is another one."
		return &told
	}
	patch := textdiff.Compare(before, now).Patch(e.Path)
	if patch == "" || len(patch) > maxKnown { // they differ in line ends alone, or in nearly everything
		return err
	}
	told.Message += " What has changed since you last read or wrote it here:\n" + patch
	told.Details = map[string]string{"patch": patch}
	return &told
}

// smallText reads a file that may be compared.
func smallText(path string) (string, bool) {
	f, st, err := engine.OpenRegular(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	if st.Size() > maxKnown {
		return "", false
	}
	b, err := io.ReadAll(io.LimitReader(f, maxKnown+1))
	return string(b), err == nil && len(b) <= maxKnown && utf8.Valid(b)
}
