package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/runner"
)

// again is when a tunnel whose status could not be written is looked at again.
const again = 100 * time.Millisecond

// Reconciler keeps the clients of tunnels running. All fields but Dial and the unexported are required.
type Reconciler struct {
	// Client reads from the cache and writes to the API; Live reads from the API.
	Client client.Client
	Live   client.Client
	// Runner is this reconciler's alone: it stops clients and asks how they are.
	Runner *runner.Runner
	// Now is the clock.
	Now func() time.Time
	// Dir is an owner-only directory for what belongs to the clients.
	Dir string
	// ServerURL is the address of the MCP endpoint, TokenFile the absolute path of the file with the value of the
	// Authorization header.
	ServerURL func() string
	TokenFile string
	// Environ is the environment of clients, known after a while at most. Home is the account's home directory and
	// Self this program's path: the client is looked for in PATH and there.
	Environ    func(ctx context.Context) []string
	Home, Self string
	// Routes tells when the way to the internet has changed.
	Routes Routes
	// Log tells of starts and ends.
	Log logr.Logger
	// Dial makes a connection to the control plane; nil is the system's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	gate     sync.RWMutex // held shared while a client is started
	draining bool

	mu      sync.Mutex
	tunnels map[types.NamespacedName]*supervised
}

// supervised is what this life of the daemon knows of a tunnel. Status tells others; what of it must survive is
// rebuilt from there.
type supervised struct {
	mu sync.Mutex // of all that follows

	uid    types.UID
	object *v1alpha1.Tunnel // as it was seen last; not to be changed
	wanted bool             // neither deleted nor suspended

	settled   bool
	busy      bool
	notBefore time.Time
	failures  int
	restarts  int32
	restart   bool // the next start is one

	child    *child
	stopping bool
	cause    string // reason for which the client is being stopped; empty if it was asked for
	stuck    error  // the client could not be stopped

	looked  time.Time
	prompt  bool
	working bool      // at the last look
	worked  time.Time // last known to work, at least since the client was started
	poll    pollClock
	fault   string
	cutOff  error   // why the control plane cannot be reached
	trouble trouble // why the tunnel is not ready; kept until it is
}

// SetupWithManager has the manager run the reconciler.
func (r *Reconciler) SetupWithManager(m ctrl.Manager) error {
	watch := manager.RunnableFunc(func(ctx context.Context) error {
		r.Routes.Watch(ctx, r.routesChanged)
		return nil
	})
	if err := m.Add(watch); err != nil {
		return fmt.Errorf("watch the routes: %w", err)
	}
	return ctrl.NewControllerManagedBy(m).
		Named("tunnel").
		For(&v1alpha1.Tunnel{}).
		WatchesRawSource(r.Runner.Source()).
		Complete(r)
}

// Adopt takes back what an earlier life of the daemon said of its clients: whether one works is not known before
// it was started and asked. It is called before the manager starts.
func (r *Reconciler) Adopt(ctx context.Context) error {
	all := &v1alpha1.TunnelList{}
	if err := r.Live.List(ctx, all); err != nil {
		return fmt.Errorf("list the tunnels: %w", err)
	}
	for i := range all.Items {
		t := &all.Items[i]
		if !apimeta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionReady) {
			continue
		}
		starting(t, "Rig Bridge was started again; the client is not started yet.", r.Now())
		if err := r.Live.Status().Update(ctx, t); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reset the status of tunnel %s: %w", t.Name, err)
		}
	}
	return nil
}

// Active is the number of tunnels that are to be kept up.
func (r *Reconciler) Active() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.tunnels {
		s.mu.Lock()
		if s.wanted {
			n++
		}
		s.mu.Unlock()
	}
	return n
}

// Reconcile looks at one tunnel.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (res ctrl.Result, err error) {
	cached := &v1alpha1.Tunnel{}
	if err := r.Client.Get(ctx, req.NamespacedName, cached); client.IgnoreNotFound(err) != nil {
		return res, err
	} else if apierrors.IsNotFound(err) {
		r.dismiss(req.NamespacedName, "")
		return res, nil
	}
	if !r.dismiss(req.NamespacedName, cached.UID) { // one of the same name, whose end wakes us
		return res, nil
	}
	t, s := cached.DeepCopy(), r.know(req.NamespacedName, cached)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.see(cached)
	d := r.act(s)
	r.judge(t, s)
	if !apiequality.Semantic.DeepEqual(cached.Status, t.Status) {
		if err := r.Client.Status().Update(ctx, t); apierrors.IsConflict(err) { // the cache is behind
			return ctrl.Result{RequeueAfter: again}, nil
		} else if err != nil {
			return res, client.IgnoreNotFound(err)
		}
	}
	if !t.DeletionTimestamp.IsZero() && s.settled && !s.busy && !s.child.running() {
		return res, r.release(ctx, t)
	}
	return ctrl.Result{RequeueAfter: d.after}, nil
}

// see takes the tunnel as it is now, with s locked. What was changed by somebody is tried at once.
func (s *supervised) see(t *v1alpha1.Tunnel) {
	if s.object != nil && s.object.Generation != t.Generation && s.stuck == nil {
		s.notBefore, s.failures = time.Time{}, 0
	}
	s.object = t
	s.wanted = t.DeletionTimestamp.IsZero() && !t.Spec.Suspended
	if !s.wanted && s.child == nil {
		s.failures, s.restart, s.trouble = 0, false, trouble{}
	}
}

// know returns what is known of a tunnel, and begins with what its status says.
func (r *Reconciler) know(key types.NamespacedName, t *v1alpha1.Tunnel) *supervised {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.tunnels[key]
	if s == nil {
		s = &supervised{uid: t.UID, restarts: t.Status.Restarts, trouble: rememberedTrouble(t)}
		if r.tunnels == nil {
			r.tunnels = map[types.NamespacedName]*supervised{}
		}
		r.tunnels[key] = s
	}
	return s
}

// dismiss forgets a tunnel of that name with another UID, and says whether there is none any more. A client that
// it left, because somebody took its finalizer away, is stopped first.
func (r *Reconciler) dismiss(key types.NamespacedName, uid types.UID) (gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.tunnels[key]
	if s == nil || s.uid == uid {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = false
	if s.child.running() {
		if !s.busy {
			r.stop(s, "")
		}
		return false
	}
	delete(r.tunnels, key)
	return true
}

// act does what is to be done next, with s locked. What takes time is done in the background.
func (r *Reconciler) act(s *supervised) decision {
	if s.child != nil && !s.child.running() {
		r.noteEnd(s)
	}
	for {
		d := decide(r.observe(s))
		switch d.do {
		case begin:
			r.start(s)
			continue
		case settle:
			r.settle(s)
		case look:
			r.look(s)
		case end:
			r.stop(s, d.cause)
		case rest, wait:
		}
		return d
	}
}

// observe gathers what decide looks at.
func (r *Reconciler) observe(s *supervised) observed {
	spec := s.object.Spec
	return observed{
		now: r.Now(), unwanted: !s.wanted || r.drains(), unattended: spec.Watchdog.Disabled,
		interval: min(time.Duration(spec.Watchdog.IntervalSeconds)*time.Second, pollLimit(spec)/2),
		settled:  s.settled, busy: s.busy, running: s.child != nil, outdated: s.child != nil && s.child.outdated(spec),
		notBefore: s.notBefore, failures: s.failures,
		worked: !s.worked.IsZero(), looked: s.looked, prompt: s.prompt, fault: s.fault, reachable: s.cutOff == nil,
	}
}

func (r *Reconciler) drains() bool {
	r.gate.RLock()
	defer r.gate.RUnlock()
	return r.draining
}

// start starts a client.
func (r *Reconciler) start(s *supervised) {
	r.gate.RLock()
	defer r.gate.RUnlock()
	if r.draining {
		return
	}
	now := r.Now()
	c, err := r.startClient(s.object)
	s.forgetLook()
	s.worked, s.poll = time.Time{}, pollClock{}
	var unmet *unmetError
	switch {
	case errors.As(err, &unmet):
		s.trouble, s.notBefore = trouble{unmet.reason, sentence(err.Error())}, now.Add(retry)
	case err != nil:
		s.failures = inARow(s.failures, 0, true)
		s.trouble, s.notBefore = trouble{v1alpha1.ReasonClientUnusable, sentence(err.Error())}, now.Add(pauseAfter(s.failures))
	default:
		if s.restart {
			s.restarts++
		}
		s.child, s.restart = c, false
		r.Log.Info("Tunnel client started", "tunnel", s.object.Name, "pid", c.family.PGID(), "restarts", s.restarts)
		object := s.object
		r.Runner.Go(object, func() { <-c.done })
	}
}

// noteEnd takes note of the end of the client.
func (r *Reconciler) noteEnd(s *supervised) {
	c := s.child
	byItself := !s.stopping && s.wanted && !r.drains()
	life := c.ended.Sub(c.began)
	r.Log.Info("Tunnel client ended", "tunnel", s.object.Name, "pid", c.family.PGID(), "reason", s.cause, "duration", life)
	if byItself || s.cause != "" {
		s.failures = inARow(s.failures, life, byItself)
		s.notBefore = c.ended.Add(pauseAfter(s.failures))
		s.restart = true
	}
	if byItself {
		s.trouble = trouble{v1alpha1.ReasonClientExited, fmt.Sprintf("The client %s after %s; it is started again after %s. What it said last is in %s.",
			c.howItEnded(), life.Round(time.Second), pauseAfter(s.failures), c.log)}
	}
	s.child, s.stopping, s.cause, s.stuck = nil, false, "", nil
	s.forgetLook()
}

// forgetLook forgets what the last look found.
func (s *supervised) forgetLook() {
	s.looked, s.prompt, s.working, s.fault, s.cutOff = time.Time{}, false, false, "", nil
}

// settle stops what earlier lives of the daemon left, in the background.
func (r *Reconciler) settle(s *supervised) {
	uid, recorded := s.uid, s.object.Status.Process
	r.background(s, func() func() {
		err := settleEarlier(uid, recorded)
		r.Environ(context.Background()) // so that nobody waits for it later
		return func() {
			if s.settled = err == nil; err != nil {
				s.stuck, s.notBefore = err, r.Now().Add(retry)
			} else {
				s.stuck = nil
			}
		}
	})
}

// stop stops the client, in the background.
func (r *Reconciler) stop(s *supervised, cause string) {
	c := s.child
	s.stopping, s.cause = true, cause
	if cause == v1alpha1.ReasonRouteChanged {
		s.trouble = trouble{cause, "The default route changed; the client is started again."}
	}
	r.background(s, func() func() {
		err := c.stop()
		return func() {
			if s.child == c && err != nil { // else its end has been noted
				s.stuck, s.notBefore = err, r.Now().Add(retry)
			}
		}
	})
}

// background runs fn without s locked, and then what it returns with s locked.
func (r *Reconciler) background(s *supervised, fn func() func()) {
	s.busy = true
	r.Runner.Go(s.object, func() {
		after := fn()
		s.mu.Lock()
		defer s.mu.Unlock()
		after()
		s.busy = false
	})
}

// routesChanged has those clients looked at that were started on another way to the internet.
func (r *Reconciler) routesChanged() {
	route := r.Routes.Current()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.tunnels {
		s.mu.Lock()
		if s.child != nil && s.child.route != route || s.child == nil && s.failures > 0 {
			s.prompt = true
			r.Runner.Wake(s.object)
		}
		s.mu.Unlock()
	}
}

// release lets a deleted tunnel go, with its files.
func (r *Reconciler) release(ctx context.Context, t *v1alpha1.Tunnel) error {
	url, out := r.files(t.Name)
	var errs []error
	for _, path := range []string{url, out, out + ".1", KeyFile(r.Dir, t.Name)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove a file of tunnel %s: %w", t.Name, err))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if controllerutil.RemoveFinalizer(t, v1alpha1.Finalizer) {
		if err := r.Client.Update(ctx, t); apierrors.IsConflict(err) {
			return fmt.Errorf("release tunnel %s: %w", t.Name, err)
		} else if err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return nil
}

// Halt stops all clients and starts no more. It may be called again.
func (r *Reconciler) Halt(ctx context.Context) error {
	r.gate.Lock()
	r.draining = true
	r.gate.Unlock()
	return r.each(func(key types.NamespacedName, s *supervised) error {
		s.mu.Lock()
		c := s.child
		s.mu.Unlock()
		if !c.running() {
			return nil
		}
		if err := c.family.Stop(ctx); err != nil {
			return fmt.Errorf("stop the client of tunnel %s: %w", key.Name, err)
		}
		select {
		case <-c.done:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("stop the client of tunnel %s: %w", key.Name, ctx.Err())
		}
	})
}

// Drain is Halt, and records it.
func (r *Reconciler) Drain(ctx context.Context) error {
	if err := r.Halt(ctx); err != nil {
		return err
	}
	return r.each(func(key types.NamespacedName, s *supervised) error {
		for {
			if recorded, err := r.recordHalt(ctx, key, s); recorded || err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("record that tunnel %s is stopped: %w", key.Name, ctx.Err())
			case <-time.After(10 * time.Millisecond): // the cache is behind, or a worker is at it
			}
		}
	})
}

// recordHalt records that a client is stopped, and says whether the record is there.
func (r *Reconciler) recordHalt(ctx context.Context, key types.NamespacedName, s *supervised) (bool, error) {
	if _, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: key}); err != nil {
		return false, fmt.Errorf("record that tunnel %s is stopped: %w", key.Name, err)
	}
	t := &v1alpha1.Tunnel{}
	if err := r.Live.Get(ctx, key, t); err != nil {
		return true, client.IgnoreNotFound(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	told := apimeta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady)
	return told != nil && slices.Contains(atRest, told.Reason) && s.child == nil && (t.Status.Process == nil || !s.settled), nil
}

// atRest are the reasons of tunnels whose clients are not to run.
var atRest = []string{v1alpha1.ReasonBridgeStopped, v1alpha1.ReasonSuspended, v1alpha1.ReasonClientUnstoppable}

// each calls fn for all known tunnels at once.
func (r *Reconciler) each(fn func(types.NamespacedName, *supervised) error) error {
	r.mu.Lock()
	known := maps.Clone(r.tunnels)
	r.mu.Unlock()
	var group errgroup.Group
	for key, s := range known {
		group.Go(func() error { return fn(key, s) })
	}
	return group.Wait()
}
