// Package exchange hands what must never be stored from one side of the daemon to the other: the arguments of
// a call on their way in, the text of its result on its way out, and the output of a command while it runs.
//
// It lives in memory only and is bounded. mcpserver puts arguments and takes results; the Operation reconciler
// does the reverse; the API serves an operation's log and request from it. Both sides keep working when an
// entry is missing: after a restart, or once it had to make room.
package exchange

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
)

// Bounds of the exchange.
const (
	// MaxArgumentBytes bounds the arguments of all calls under way together.
	MaxArgumentBytes = 256 << 20
	// MaxReplays is the number of full results of keyed calls that are kept for replay.
	MaxReplays = 64
	// MaxReplayBytes bounds those results together.
	MaxReplayBytes = 64 << 20
)

// ErrFull is returned when the arguments of the calls under way fill the exchange.
var ErrFull = errors.New("too many large calls are under way; wait for one to finish and try again")

// Image is one image block of a result.
type Image struct {
	MIMEType string
	Data     []byte
}

// Result is what a call answers beside what its Operation's status records.
type Result struct {
	// Text is the complete text for the assistant; for a failure, what went wrong and what to do next.
	Text string
	// Images follow the text.
	Images []Image
	// Details is the tool's own metadata, encoded; nil when there is none.
	Details json.RawMessage
	// Path is the resolved path that the answer names.
	Path string
	// Fields are further members of structuredContent.
	Fields map[string]any
	// Arguments are the call's arguments, for the owner's eyes; nil when they are large.
	Arguments json.RawMessage
	// Output is what remains of a command's output, for those that read it by cursor; nil for other tools.
	Output Output
}

// keptOutput is how much the remains of a command's output are counted for, in bytes: their usual bound.
const keptOutput = 128 << 10

func (r *Result) size() int64 {
	n := int64(len(r.Text) + len(r.Details) + len(r.Path) + len(r.Arguments) + 512)
	if r.Output != nil {
		n += keptOutput
	}
	for _, i := range r.Images {
		n += int64(len(i.Data))
	}
	return n
}

// Output is the live output of a running command. Implementations are safe for concurrent use.
type Output interface {
	// Read returns the text from cursor on, at most max bytes of it, where to go on, and how many bytes
	// after cursor are no longer kept.
	Read(cursor int64, max int) (text string, next, missed int64)
	// Elapsed returns how long ago the command was started, by the monotonic clock.
	Elapsed() time.Duration
	// Wait blocks until there is output after cursor, the command is over or ctx is done.
	Wait(ctx context.Context, cursor int64) error
}

// Exchange is safe for concurrent use. The zero value is not usable; call New.
type Exchange struct {
	mu       sync.Mutex
	calls    map[string]*call // by reference
	argBytes int64
	replays  *cache // keyed calls, kept for replay
	outputs  map[types.UID]Output
}

// call is a call under way. It stays while its caller waits or its arguments are needed.
type call struct {
	arguments json.RawMessage // nil once they are dropped
	waiting   bool            // the caller has not released it
	result    *Result         // for the caller, once it is there
}

// New returns an empty exchange.
func New() *Exchange {
	return &Exchange{
		calls:   map[string]*call{},
		replays: newCache(MaxReplays, MaxReplayBytes),
		outputs: map[types.UID]Output{},
	}
}

// PutArguments keeps the arguments of a call and returns the reference under which the call's Operation names
// them. It returns ErrFull when there is no room. The caller releases the reference when it has its result.
func (x *Exchange) PutArguments(arguments json.RawMessage) (ref string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := int64(len(arguments))
	if x.argBytes+n > MaxArgumentBytes {
		return "", ErrFull
	}
	ref = uuid.NewString()
	x.calls[ref] = &call{arguments: arguments, waiting: true}
	x.argBytes += n
	return ref, nil
}

// Arguments returns the arguments under a reference, if they are still here.
func (x *Exchange) Arguments(ref string) (json.RawMessage, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c, ok := x.calls[ref]
	if !ok || c.arguments == nil {
		return nil, false
	}
	return c.arguments, true
}

// DropArguments forgets the arguments under a reference. It is harmless to repeat.
func (x *Exchange) DropArguments(ref string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c, ok := x.calls[ref]; ok {
		x.argBytes -= int64(len(c.arguments))
		c.arguments = nil
		x.tidy(ref, c)
	}
}

// Deliver hands a result to the caller that put the arguments, if it still waits.
func (x *Exchange) Deliver(ref string, r *Result) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c, ok := x.calls[ref]; ok && c.waiting {
		c.result = r
	}
}

// Collect returns the result that was delivered under a reference.
func (x *Exchange) Collect(ref string) (*Result, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c, ok := x.calls[ref]
	if !ok || c.result == nil {
		return nil, false
	}
	return c.result, true
}

// Release says that nobody waits for the result under a reference any more. The arguments stay until they are
// dropped. It is harmless to repeat.
func (x *Exchange) Release(ref string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c, ok := x.calls[ref]; ok {
		c.waiting, c.result = false, nil
		x.tidy(ref, c)
	}
}

func (x *Exchange) tidy(ref string, c *call) {
	if !c.waiting && c.arguments == nil {
		delete(x.calls, ref)
	}
}

// PutReplay keeps the full result of a keyed call for replays.
func (x *Exchange) PutReplay(uid types.UID, r *Result) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.replays.put(uid, r)
}

// Replay returns the full result of a keyed call, if it is still here, and marks it as used.
func (x *Exchange) Replay(uid types.UID) (*Result, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.replays.get(uid)
}

// PeekReplay returns the full result of a keyed call without marking it as used.
func (x *Exchange) PeekReplay(uid types.UID) (*Result, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e, ok := x.replays.byUID[uid]; ok {
		return e.Value.(*cacheEntry).result, true
	}
	return nil, false
}

// PutOutput publishes the live output of a command.
func (x *Exchange) PutOutput(uid types.UID, o Output) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.outputs[uid] = o
}

// Output returns the live output of a command that runs.
func (x *Exchange) Output(uid types.UID) (Output, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	o, ok := x.outputs[uid]
	return o, ok
}

// DropOutput forgets the live output of a command.
func (x *Exchange) DropOutput(uid types.UID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.outputs, uid)
}

// cache keeps results, least recently used first to go, bounded in number and in bytes.
type cache struct {
	maxEntries      int
	maxBytes, bytes int64
	order           *list.List // of *cacheEntry, most recently used in front
	byUID           map[types.UID]*list.Element
}

type cacheEntry struct {
	uid    types.UID
	result *Result
}

func newCache(maxEntries int, maxBytes int64) *cache {
	return &cache{maxEntries: maxEntries, maxBytes: maxBytes, order: list.New(), byUID: map[types.UID]*list.Element{}}
}

func (c *cache) put(uid types.UID, r *Result) {
	c.drop(uid)
	c.byUID[uid] = c.order.PushFront(&cacheEntry{uid, r})
	c.bytes += r.size()
	// The newest result always stays: its caller waits for it.
	for c.order.Len() > 1 && (c.order.Len() > c.maxEntries || c.bytes > c.maxBytes) {
		c.drop(c.order.Back().Value.(*cacheEntry).uid)
	}
}

func (c *cache) get(uid types.UID) (*Result, bool) {
	e, ok := c.byUID[uid]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cacheEntry).result, true
}

func (c *cache) drop(uid types.UID) {
	e, ok := c.byUID[uid]
	if !ok {
		return
	}
	c.bytes -= e.Value.(*cacheEntry).result.size()
	c.order.Remove(e)
	delete(c.byUID, uid)
}
