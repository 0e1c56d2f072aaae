package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rigbridge/rigbridge/api/atomicfile"
	"github.com/rigbridge/rigbridge/api/dashboard"
	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/server"
	"github.com/rigbridge/rigbridge/api/storage"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/config/crd"
	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/bash"
	"github.com/rigbridge/rigbridge/controllers/engine/process"
	"github.com/rigbridge/rigbridge/controllers/event"
	"github.com/rigbridge/rigbridge/controllers/operation"
	"github.com/rigbridge/rigbridge/controllers/run"
	"github.com/rigbridge/rigbridge/controllers/runner"
	"github.com/rigbridge/rigbridge/controllers/tunnel"
	"github.com/rigbridge/rigbridge/controllers/workspace"
	"github.com/rigbridge/rigbridge/mcpserver"
	"github.com/rigbridge/rigbridge/mcpserver/transport"
	"github.com/rigbridge/rigbridge/mcpserver/transport/security"
)

// maxObject bounds one object in the store, in bytes; it lies below the size at which badger keeps values apart.
const maxObject = 96 << 10

// Files with the full output of commands are kept for this long, and this many bytes of them together.
const (
	outputAge   = 7 * 24 * time.Hour
	outputTotal = 2 << 30
)

// daemon is everything that runs.
type daemon struct {
	settings *settings
	log      logr.Logger
	failed   chan error // what ended by itself: a listener, the manager, the store, or all use
	activity activity
	token    *security.Token
	env      engine.Env // the account's, without a working directory
	programs *programs

	db         *storage.DB
	api        *server.Server
	exchange   *exchange.Exchange
	events     record.EventRecorder
	quiet      func() // ends the recording of events
	operations *operation.Reconciler
	runs       *run.Reconciler
	tunnels    *tunnel.Reconciler
	runner     *runner.Runner
	calls      *mcpserver.Calls
	mcp        *transport.Handler
	dashboard  *dashboard.Dashboard
	listeners  []net.Listener
	servers    []*http.Server

	cancel  context.CancelFunc // ends the manager and the watches
	managed chan struct{}      // closed when the manager has ended
}

// start brings the daemon up. What it started before a failure it ends again.
func start(s *settings, log logr.Logger) (_ *daemon, err error) {
	d := &daemon{settings: s, log: log, failed: make(chan error, 4), exchange: exchange.New(), runner: runner.New(), programs: newPrograms(), managed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	go crd.All() // the API needs them soon: they are read while the store is opened
	defer func() {
		if err != nil {
			d.release()
		}
	}()
	for _, step := range []func(context.Context) error{d.openState, d.openStore, d.listen, d.assemble, d.serve} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// openState makes the owner-only directories and reads the token.
func (d *daemon) openState(context.Context) (err error) {
	for _, dir := range []string{d.settings.StateDir, d.outputDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("the state directory cannot be made: %w", err)
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("the state directory must be the owner's alone: %w", err)
		}
	}
	if d.env, err = accountEnv(d.outputDir()); err != nil {
		return err
	}
	d.token, err = security.LoadToken(d.settings.TokenFile, d.settings.explicitToken)
	return err
}

func (d *daemon) outputDir() string { return filepath.Join(d.settings.StateDir, "outputs") }

func (d *daemon) openStore(context.Context) (err error) {
	d.db, err = storage.Open(storage.Options{Dir: filepath.Join(d.settings.StateDir, "store"), Logger: d.log.WithName("store"), MaxObjectBytes: maxObject, Sync: d.settings.syncStore})
	var locked *storage.LockedError
	if errors.As(err, &locked) {
		return fmt.Errorf("another rig-bridge already uses %s: %w", d.settings.StateDir, err)
	}
	if err != nil {
		return fmt.Errorf("the store cannot be opened: %w", err)
	}
	for _, sentence := range d.db.Recovery().Sentences {
		d.log.Info("Store recovered", "reason", sentence)
	}
	return nil
}

func (d *daemon) listen(context.Context) error {
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(d.settings.Port))
	tcp, err := net.Listen("tcp4", addr)
	if err != nil {
		return fmt.Errorf("port %d on 127.0.0.1 cannot be used (%w); stop the program that has it, or choose another with --port", d.settings.Port, err)
	}
	d.listeners = append(d.listeners, tcp)
	unix, err := server.ListenUnix(socketPath(d.settings))
	if err != nil {
		return err
	}
	d.listeners = append(d.listeners, unix)
	return nil
}

func (d *daemon) port() int { return d.listeners[0].Addr().(*net.TCPAddr).Port }

func (d *daemon) url() string { return fmt.Sprintf("http://127.0.0.1:%d/mcp", d.port()) }

// assemble makes the API, the controllers and the MCP server, and waits until they can work.
func (d *daemon) assemble(ctx context.Context) (err error) {
	d.api, err = server.New(server.Options{DB: d.db, Exchange: d.exchange, Version: buildVersion()})
	if err != nil {
		return fmt.Errorf("assemble the API: %w", err)
	}
	if d.dashboard, err = d.newDashboard(ctx); err != nil {
		return err
	}
	m, err := d.manager()
	if err != nil {
		return err
	}
	if err := d.control(ctx, m); err != nil {
		return err
	}
	// The MCP server follows threads. Asked for now, their informer is waited for with the others, and not by a clock.
	if _, err := m.GetCache().GetInformer(ctx, &v1alpha1.Thread{}); err != nil {
		return fmt.Errorf("follow the threads: %w", err)
	}
	go func() {
		defer close(d.managed)
		if err := m.Start(ctx); err != nil {
			d.failed <- fmt.Errorf("controllers: %w", err)
		}
	}()
	wait, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if !m.GetCache().WaitForCacheSync(wait) {
		return errors.New("the controllers could not read the store")
	}
	if err := d.runs.Adopt(ctx); err != nil {
		return fmt.Errorf("end what an earlier life left working: %w", err)
	}
	return d.answer(ctx, m.GetCache())
}

// manager makes an ordinary manager whose client and cache are in process.
func (d *daemon) manager() (ctrl.Manager, error) {
	skip, plain := true, false // nothing here has a priority, and the plain queue wakes a worker with one goroutine less
	m, err := ctrl.NewManager(&rest.Config{Host: "in-process"}, ctrl.Options{
		Scheme: d.api.Scheme, Logger: d.log.V(1).WithName("controllers"),
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return d.api.Mapper, nil },
		NewCache:       func(*rest.Config, cache.Options) (cache.Cache, error) { return d.api.NewCache() },
		NewClient: func(_ *rest.Config, o client.Options) (client.Client, error) {
			return server.NewCachedClient(d.api.Client, o.Cache.Reader), nil
		},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip, UsePriorityQueue: &plain},
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	return m, nil
}

// control sets the reconcilers up.
func (d *daemon) control(ctx context.Context, m ctrl.Manager) error {
	d.events, d.quiet = event.NewRecorder(d.api.Client, d.log.WithName("events"))
	if err := (&event.Reconciler{Client: m.GetClient(), Now: time.Now}).SetupWithManager(m); err != nil {
		return fmt.Errorf("set up the event controller: %w", err)
	}
	workspaces := &workspace.Reconciler{Client: m.GetClient(), Live: d.api.Client, Events: d.events, Account: account(), Host: hostname(), Now: time.Now}
	d.operations = &operation.Reconciler{
		Client: m.GetClient(), Live: d.api.Client, Durable: d.api.WaitDurable, Exchange: d.exchange, Runner: d.runner,
		Locks: &runner.Locks{}, Env: d.env, Environ: d.programs.environ, Now: d.clock(), NewID: uuid.NewString, Used: workspaces.Used, Events: d.events,
	}
	if err := d.operations.SetupWithManager(ctx, m); err != nil {
		return fmt.Errorf("set up the operation controller: %w", err)
	}
	if err := workspaces.SetupWithManager(m); err != nil {
		return fmt.Errorf("set up the workspace controller: %w", err)
	}
	if err := d.controlWork(ctx, m, workspaces); err != nil {
		return err
	}
	if err := d.controlTunnels(ctx, m); err != nil {
		return err
	}
	if err := process.BecomeSubreaper(); err != nil {
		d.log.Info("Orphans go to another process", "err", err.Error())
	} else {
		go process.ReapOrphans(ctx)
	}
	go d.pruneOutputs(ctx)
	go d.watchStore(ctx)
	return nil
}

// clock is the clock of the times in receipts. What is measured is measured by the monotonic one.
func (d *daemon) clock() func() time.Time {
	if d.settings.now != nil {
		return d.settings.now
	}
	return time.Now
}

// accountEnv finds the directories of the account that the daemon works for.
func accountEnv(outputDir string) (engine.Env, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return engine.Env{}, errors.New("HOME is not set; set it to the account's home directory")
	}
	conf, err := configHome()
	if err != nil {
		return engine.Env{}, err
	}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	return engine.Env{Home: home, ConfigHome: conf, OutputDir: outputDir}, nil
}

// pruneOutputs keeps the files with full outputs within their age and size.
func (d *daemon) pruneOutputs(ctx context.Context) {
	for {
		if err := bash.PruneOutputs(d.outputDir(), outputAge, outputTotal); err != nil {
			d.log.Error(err, "Full outputs could not be pruned")
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Hour):
		}
	}
}

// watchStore ends the daemon when its store has failed for good: what cannot be recorded must not be done, and a
// new start settles by the record what was under way.
func (d *daemon) watchStore(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(500 * time.Millisecond):
		}
		if err := d.api.Ready(); err != nil {
			d.failed <- fmt.Errorf("the store in %s has failed, start Rig Bridge again when its disk works: %w", d.settings.StateDir, err)
			return
		}
	}
}

// answer makes the MCP server.
func (d *daemon) answer(ctx context.Context, cached cache.Cache) error {
	keys, err := readKeys(filepath.Join(d.settings.StateDir, "keys"))
	if err != nil {
		return err
	}
	s := mcpserver.New(mcpserver.Options{Version: buildVersion(), Log: d.log.WithName("mcp"), CheckOutputs: os.Getenv("RIG_BRIDGE_CHECK_OUTPUTS") == "1"})
	d.calls = &mcpserver.Calls{Client: d.api.Client, Cache: cached, Durable: d.api.WaitDurable, Exchange: d.exchange,
		DigestKey: keys.Digest, Home: d.env.Home, Log: d.log.WithName("mcp")}
	if err := d.calls.Register(ctx, s); err != nil {
		return fmt.Errorf("register the tools: %w", err)
	}
	d.mcp = transport.New(transport.Options{Server: s.MCP(), Call: s.Call, Info: s.Info(), SessionKey: keys.Session, Log: d.log.WithName("mcp")})
	return nil
}

// keys are secrets that must stay the same over restarts.
type keys struct {
	Digest  []byte `json:"digest"`
	Session []byte `json:"session"`
}

// readKeys reads the daemon's keys, or makes them at the first start.
func readKeys(path string) (k keys, err error) {
	b, err := os.ReadFile(path)
	if err == nil {
		if err := json.Unmarshal(b, &k); err != nil || len(k.Digest) < 32 || len(k.Session) < 32 {
			return k, fmt.Errorf("the file %s is damaged; move it away to have a new one made (retries of earlier calls will then be refused)", path)
		}
		return k, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return k, fmt.Errorf("read the daemon's keys: %w", err)
	}
	k = keys{Digest: make([]byte, 32), Session: make([]byte, 32)}
	rand.Read(k.Digest)
	rand.Read(k.Session)
	if b, err = json.Marshal(k); err != nil {
		return k, err
	}
	return k, atomicfile.Write(path, b, 0o600)
}

// serve begins to answer and tells others where.
func (d *daemon) serve(ctx context.Context) error {
	handlers := []http.Handler{d.overTCP(), d.overUnix()}
	certificate, err := server.Certificate(d.settings.StateDir, time.Now())
	if err != nil {
		return err
	}
	accept := []net.Listener{server.BothWays(d.listeners[0], certificate), d.listeners[1]}
	for i, l := range accept {
		open, end := context.WithCancel(ctx) // of each request: a watch would otherwise outlast the wait of Shutdown
		srv := &http.Server{Handler: d.activity.watched(handlers[i]), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
			ErrorLog: quietLog(d.log), BaseContext: func(net.Listener) context.Context { return open }}
		srv.RegisterOnShutdown(end)
		d.servers = append(d.servers, srv)
		go func() {
			if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				d.failed <- fmt.Errorf("serve on %s: %w", l.Addr(), err)
			}
		}()
	}
	d.programs.find(ctx, d.log)
	go d.returnMemory(ctx)
	if d.settings.idleExit > 0 {
		d.activity.change(0)
		go d.awaitIdle(ctx, d.settings.idleExit)
	}
	where, err := json.Marshal(map[string]any{"url": d.url(), "tokenFile": d.settings.TokenFile, "pid": os.Getpid()})
	if err != nil {
		return err
	}
	return atomicfile.Write(endpointFile(d.settings), where, 0o600)
}

func endpointFile(s *settings) string { return filepath.Join(s.StateDir, "endpoint.json") }

// stop ends what runs, records it, and closes the store last.
func (d *daemon) stop(ctx context.Context) error {
	err := d.mcp.Shutdown(ctx) // each call under way is cancelled and answered
	if d.api.Ready() == nil {  // with a failed store there is nothing to wait for
		err = errors.Join(err, d.drain(ctx))
	}
	for _, s := range d.servers {
		if serr := s.Shutdown(ctx); serr != nil { // a watch that stays open is cut off
			err = errors.Join(err, s.Close())
		}
	}
	return errors.Join(err, os.Remove(endpointFile(d.settings)), d.release())
}

// drain ends operations and tunnels, at the same time, and records it.
func (d *daemon) drain(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { return d.operations.Drain(ctx) })
	group.Go(func() error { return d.tunnels.Drain(ctx) })
	return group.Wait()
}

// release ends the background work and closes the store.
func (d *daemon) release() error {
	if d.tunnels != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopWait)
		defer cancel()
		if err := d.tunnels.Halt(ctx); err != nil { // done already in an ordinary end
			d.log.Error(err, "A tunnel client goes on")
		}
	}
	d.cancel()
	for _, l := range d.listeners {
		_ = l.Close() // closed already where a server had it
	}
	if d.operations != nil {
		<-d.managed
		d.runner.Wait()
		d.programs.asking.Wait()
	}
	if d.quiet != nil {
		d.quiet()
	}
	if d.api != nil {
		d.api.Close()
	}
	if d.db == nil {
		return nil
	}
	if err := d.db.Close(); err != nil {
		return fmt.Errorf("close the store: %w", err)
	}
	return nil
}

func account() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}
