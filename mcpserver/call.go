package mcpserver

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"github.com/mark3labs/mcp-go/mcp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/failpoint"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/mcpserver/transport"
)

// cancelWait is how long a cancelled call waits for its operation to end before it answers.
const cancelWait = 4 * time.Second

// Calls turns tool calls into Operations and waits for them.
type Calls struct {
	// Client reads from and writes to the API; Cache reads what may be a moment old.
	Client client.WithWatch
	Cache  cache.Cache
	// Durable waits until everything up to a resourceVersion is on disk.
	Durable func(ctx context.Context, resourceVersion string) error
	// Exchange takes arguments and has results.
	Exchange *exchange.Exchange
	// DigestKey is the daemon's own key for digests of arguments.
	DigestKey []byte
	// Home is the account's home directory.
	Home string
	// Log gets what a client cannot be told.
	Log logr.Logger

	waiters *waiters
	recent  recent
	order   order
}

// Describe says what an operation is about, while this daemon remembers: the command, or the tool and what it looks
// at. The text is for the owner's eyes and must not be stored or logged.
func (c *Calls) Describe(op *v1alpha1.Operation) (string, bool) { return c.recent.description(op) }

// Register makes the tools of this package live and begins to watch; the watch ends with ctx.
func (c *Calls) Register(ctx context.Context, s *Server) error {
	if err := c.followThreads(ctx); err != nil {
		return err
	}
	c.waiters = newWaiters(c.Client, c.Log)
	c.waiters.over = func(op *v1alpha1.Operation) { c.recent.end(op, time.Now()) }
	go c.waiters.run(ctx)
	handlers := map[string]Handler{
		"workspace_open": c.openWorkspace, "workspace_close": c.closeWorkspace,
		"operation_wait": c.waitOperation, "operation_cancel": c.cancelOperation,
		"write": c.keyed, "edit": c.keyed, "bash": c.keyed,
		"run_start": c.keyed, "work_handoff": c.keyed, "workspace_list": c.listWorkspaces,
		"read": c.lookup, "ls": c.lookup, "find": c.lookup, "grep": c.lookup, "skill_info": c.lookup,
	}
	for tool, h := range handlers {
		if err := s.Register(tool, h); err != nil {
			return err
		}
	}
	return nil
}

// followThreads keeps the threads in order from now on, beginning with those that there are.
func (c *Calls) followThreads(ctx context.Context) error {
	threads, err := c.Cache.GetInformer(ctx, &v1alpha1.Thread{})
	if err != nil {
		return fmt.Errorf("follow the threads: %w", err)
	}
	following, err := threads.AddEventHandler(&c.order)
	if err != nil {
		return fmt.Errorf("follow the threads: %w", err)
	}
	if !toolscache.WaitFor(ctx, "", following.HasSyncedChecker()) { // WaitForCacheSync looks ten times a second only
		return fmt.Errorf("follow the threads: %w", context.Cause(ctx))
	}
	return nil
}

// arguments are those that several tools share.
type arguments struct {
	Workspace        string      `json:"workspace_id"`
	Key              string      `json:"request_key"`
	Path             string      `json:"path"`
	ExpectedRevision string      `json:"expected_revision"`
	Timeout          json.Number `json:"timeout"`
	WaitSeconds      json.Number `json:"wait_seconds"`
}

// scope is a call's workspace and what results say of it.
type scope struct {
	workspace *v1alpha1.Workspace
	thread    *v1alpha1.Thread
}

// fields are in every result of a tool that works in a workspace.
func (s scope) fields() map[string]any {
	f := map[string]any{"workspace_id": s.workspace.Name, "cwd": s.workspace.Spec.Cwd, "thread_id": s.workspace.Spec.ThreadRef.Name}
	if s.thread != nil {
		f["project_id"] = s.thread.Spec.ProjectRef.Name
	}
	return f
}

// find returns the scope of a workspace, or nil if it does not exist or is closing.
func (c *Calls) find(ctx context.Context, workspace string) (*scope, error) {
	ws := &v1alpha1.Workspace{}
	found, err := c.get(ctx, workspace, ws)
	if err != nil || !found || !ws.DeletionTimestamp.IsZero() {
		return nil, err
	}
	s := &scope{workspace: ws, thread: &v1alpha1.Thread{}}
	if found, err = c.get(ctx, ws.Spec.ThreadRef.Name, s.thread); err != nil {
		return nil, err
	}
	if !found {
		s.thread = nil
	}
	return s, nil
}

// get reads from the cache, and from the API what the cache does not have.
func (c *Calls) get(ctx context.Context, name string, obj client.Object) (bool, error) {
	err := c.Cache.Get(ctx, key(name), obj)
	if apierrors.IsNotFound(err) {
		err = c.Client.Get(ctx, key(name), obj)
	}
	if apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) {
		return false, nil
	}
	return err == nil, err
}

// lookup answers a call of a read-only tool.
func (c *Calls) lookup(ctx context.Context, tool string, raw json.RawMessage) *mcp.CallToolResult {
	var a arguments
	if err := json.Unmarshal(raw, &a); err != nil {
		return c.internal(err, tool)
	}
	s, err := c.find(ctx, a.Workspace)
	switch {
	case err != nil:
		return c.internal(err, tool)
	case s == nil:
		return expired(a.Workspace)
	}
	op := &v1alpha1.Operation{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.Namespace, Name: "look-" + uuid.NewString()},
		Spec: v1alpha1.OperationSpec{
			WorkspaceRef: v1alpha1.LocalReference{Name: a.Workspace}, ThreadRef: &s.workspace.Spec.ThreadRef,
			Tool: v1alpha1.Tool(tool),
		},
	}
	done, answer, res := c.ask(ctx, op, raw)
	if res != nil {
		return res
	}
	return c.render(done, s.fields(), answer)
}

// ask makes the operation of an unkeyed tool and waits for it and its answer. One that is no longer wanted is
// cancelled. Without an operation the result says why.
func (c *Calls) ask(ctx context.Context, op *v1alpha1.Operation, raw json.RawMessage) (*v1alpha1.Operation, *exchange.Result, *mcp.CallToolResult) {
	ref, err := c.Exchange.PutArguments(raw)
	if err != nil {
		return nil, nil, tooMuch(err)
	}
	defer c.Exchange.Release(ref)
	defer c.Exchange.DropArguments(ref)
	op.Spec.PayloadRef = ref
	w := c.waiters.add(op.Name)
	defer c.waiters.drop(w)
	undo := c.recent.begin(op, raw, time.Now())
	if err := c.Client.Create(ctx, op); err != nil {
		undo()
		return nil, nil, c.internal(err, string(op.Spec.Tool))
	}
	failpoint.Hit(failpoint.Made)
	done, err := w.await(ctx, op.UID)
	if err != nil {
		done, err = c.cancel(ctx, w, op)
	}
	answer, ok := c.Exchange.Collect(ref)
	if err != nil || done == nil || !ok {
		return nil, nil, Failure(v1alpha1.CodeExecutionFailed, v1alpha1.ReasonCancelled, "Operation aborted", nil)
	}
	return done, answer, nil
}

// keyed answers a call of a tool that changes something.
func (c *Calls) keyed(ctx context.Context, tool string, raw json.RawMessage) *mcp.CallToolResult {
	var a arguments
	err := json.Unmarshal(raw, &a)
	if err != nil {
		return c.internal(err, tool)
	}
	sum, err := digest(c.DigestKey, tool, raw)
	if err != nil {
		return c.internal(err, tool)
	}
	s, err := c.find(ctx, a.Workspace)
	if err != nil {
		return c.internal(err, tool)
	}
	claim := &claim{calls: c, scope: s, arguments: a, tool: v1alpha1.Tool(tool), digest: sum, raw: raw}
	return claim.answer(ctx)
}

// claim is one call with a retry key.
type claim struct {
	calls *Calls
	scope *scope // nil: the workspace is gone; only a receipt can answer
	arguments
	tool   v1alpha1.Tool
	digest string
	raw    json.RawMessage
	ref    string // of the arguments, once this call has claimed the key
}

// answer claims the key, or finds who has claimed it, and waits for the outcome.
func (k *claim) answer(ctx context.Context) *mcp.CallToolResult {
	c := k.calls
	w := c.waiters.add(v1alpha1.OperationName(k.Workspace, k.Key))
	defer c.waiters.drop(w)
	defer func() { c.Exchange.Release(k.ref) }()
	for {
		op, claimed, res := k.claim(ctx, w.name)
		switch {
		case res != nil:
			return res
		case op == nil: // the one that had it is gone
			continue
		case !claimed && k.free(op):
			if err := k.clear(ctx, op); err != nil {
				return c.internal(err, string(k.tool))
			}
			continue
		case !claimed && op.Spec.ArgumentsDigest != k.digest:
			return Failure(v1alpha1.CodeRequestKeyConflict, "RequestKeyConflict", fmt.Sprintf(
				"request_key %q was used for another call in this workspace. Choose a new key for a new call; to retry, repeat the first call's arguments exactly.", k.Key), k.fields(nil))
		case !claimed && op.Over():
			return k.replay(ctx, op)
		}
		if res := k.wait(ctx, w, op, claimed); res != nil {
			return res
		}
	}
}

// claim makes the operation, or reads the one that has the name.
func (k *claim) claim(ctx context.Context, name string) (op *v1alpha1.Operation, claimed bool, _ *mcp.CallToolResult) {
	c := k.calls
	if k.scope == nil {
		op = &v1alpha1.Operation{}
		found, err := c.get(ctx, name, op)
		if err != nil {
			return nil, false, c.internal(err, string(k.tool))
		}
		if !found || k.free(op) {
			return nil, false, expired(k.Workspace)
		}
		return op, false, nil
	}
	ref, err := c.Exchange.PutArguments(k.raw)
	if err != nil {
		return nil, false, tooMuch(err)
	}
	op = k.operation(name, ref)
	failpoint.Hit(failpoint.BeforeClaim)
	undo := c.recent.begin(op, k.raw, time.Now())
	if err = c.Client.Create(ctx, op); err == nil {
		failpoint.Hit(failpoint.Claimed)
		k.ref = ref
		return op, true, nil
	}
	undo()
	c.Exchange.DropArguments(ref)
	c.Exchange.Release(ref)
	if !apierrors.IsAlreadyExists(err) {
		return nil, false, c.internal(err, string(k.tool))
	}
	op = &v1alpha1.Operation{}
	err = c.Client.Get(ctx, key(name), op)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, c.internal(err, string(k.tool))
	}
	return op, false, nil
}

func (k *claim) operation(name, ref string) *v1alpha1.Operation {
	op := &v1alpha1.Operation{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.Namespace, Name: name},
		Spec: v1alpha1.OperationSpec{
			WorkspaceRef: v1alpha1.LocalReference{Name: k.Workspace}, ThreadRef: &k.scope.workspace.Spec.ThreadRef,
			Tool: k.tool, RequestKey: k.Key, ArgumentsDigest: k.digest, PayloadRef: ref,
			ExpectedRevision: wellFormed(k.ExpectedRevision),
		},
	}
	if k.Path != "" {
		if p := absolute(k.calls.Home, k.scope.workspace.Spec.Cwd, k.Path); len(p) < 4096 && !strings.Contains(p, "\x00") {
			op.Spec.Paths = []string{p}
		}
	}
	if seconds, err := k.Timeout.Float64(); err == nil {
		op.Spec.TimeoutSeconds = int32(math.Ceil(seconds))
	}
	return op
}

// wait waits for an operation that is not over: this call's, or the original of which this call is a repetition. It
// returns nil if that original is one that an earlier life of the daemon left, and turns out not to have started:
// then this call can be made.
func (k *claim) wait(ctx context.Context, w *waiter, op *v1alpha1.Operation, claimed bool) *mcp.CallToolResult {
	c := k.calls
	bounded, stop := k.budget(ctx)
	defer stop()
	if report := transport.Progress(ctx); report != nil && k.tool == v1alpha1.ToolBash {
		go c.report(bounded, op.UID, report)
	}
	done, err := w.await(bounded, op.UID)
	switch {
	case err != nil && errors.Is(err, errStillRunning):
		return k.running(ctx, op)
	case err != nil:
		done, err = c.cancel(ctx, w, op)
	}
	if err != nil {
		return Failure(v1alpha1.CodeCommandCancelled, v1alpha1.ReasonCancelled,
			"The call was cancelled and is still ending. Repeat it with the same request_key to learn its outcome.",
			k.fields(map[string]any{"operation_id": op.Name, "effects_may_have_occurred": true}))
	}
	if done == nil {
		return Failure(v1alpha1.CodeCommandCancelled, v1alpha1.ReasonCancelled, "The operation was deleted by the user while it ran.",
			k.fields(map[string]any{"effects_may_have_occurred": true}))
	}
	if !claimed && done.Succeeded().Reason == v1alpha1.ReasonNotStarted && ctx.Err() == nil {
		return nil
	}
	if k.tool.ManagesWork() {
		return k.managed(ctx, done, false)
	}
	result, ok := c.Exchange.Collect(k.ref)
	if !ok { // this call repeats another one
		result, ok = c.Exchange.Replay(done.UID)
	}
	if !ok {
		return k.replay(ctx, done)
	}
	return k.settled(ctx, done, result, nil)
}

var errStillRunning = errors.New("still running")

// budget bounds the wait of a call for a command; what changes files is always waited for.
func (k *claim) budget(ctx context.Context) (context.Context, context.CancelFunc) {
	if k.tool != v1alpha1.ToolBash {
		return ctx, func() {}
	}
	seconds, err := k.WaitSeconds.Float64()
	if err != nil {
		seconds = 45
	}
	return context.WithTimeoutCause(ctx, time.Duration(seconds*float64(time.Second)), errStillRunning)
}

// cancel asks an operation to stop and waits a moment until it has.
func (c *Calls) cancel(ctx context.Context, w *waiter, op *v1alpha1.Operation) (*v1alpha1.Operation, error) {
	by := "client"
	switch transport.CancelCause(ctx) {
	case transport.CauseDisconnect:
		by = "disconnect"
	case transport.CauseShutdown:
		by = "shutdown"
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelWait)
	defer stop()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancel":true,"cancelledBy":"`+by+`"}}`))
	target := &v1alpha1.Operation{ObjectMeta: metav1.ObjectMeta{Namespace: op.Namespace, Name: op.Name}}
	if err := c.Client.Patch(ctx, target, patch); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("cancel operation %s: %w", op.Name, err)
	}
	return w.await(ctx, op.UID)
}

// clear removes a receipt that says that nothing was done, so that the key can be claimed again.
func (k *claim) clear(ctx context.Context, op *v1alpha1.Operation) error {
	err := k.calls.Client.Delete(ctx, op, client.Preconditions{UID: &op.UID})
	if apierrors.IsConflict(err) {
		return nil // another call was faster
	}
	return client.IgnoreNotFound(err)
}

// absolute is the path that a receipt names; the engine's own rule decides what is really touched.
func absolute(home, cwd, path string) string {
	switch {
	case path == "~":
		path = home
	case len(path) > 1 && path[:2] == "~/":
		path = filepath.Join(home, path[2:])
	case !filepath.IsAbs(path):
		path = filepath.Join(cwd, path)
	}
	return filepath.Clean(path)
}

// wellFormed drops an expected revision that is none; the engine refuses it with a better message.
func wellFormed(revision string) string {
	if revision == "missing" {
		return revision
	}
	digest, ok := strings.CutPrefix(revision, "sha256:")
	if _, err := hex.DecodeString(digest); !ok || err != nil || len(digest) != 64 || strings.ToLower(digest) != digest {
		return ""
	}
	return revision
}
