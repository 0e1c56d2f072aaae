package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/rigbridge/rigbridge/api/socket"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// notRunningError says that nobody answers on the socket of a state directory.
type notRunningError struct {
	dir   string
	given bool // the directory is not the one that the daemon would take by itself
}

// Error says how to start the daemon.
func (e *notRunningError) Error() string {
	how := "rig-bridge serve"
	if e.given {
		how += " --state-dir " + e.dir
	}
	return fmt.Sprintf("no rig-bridge runs on %s; start it with: %s", e.dir, how)
}

// connection is how a command reaches the daemon. It is the RESTClientGetter of cli-runtime.
type connection struct {
	streams   genericiooptions.IOStreams
	dirFlag   string
	namespace string

	once   sync.Once
	cached discovery.CachedDiscoveryInterface
	mapper meta.RESTMapper
	err    error
}

func (c *connection) flags(root *cobra.Command) {
	root.PersistentFlags().StringVar(&c.dirFlag, "state-dir", "", "the daemon's state directory (RIG_BRIDGE_STATE_DIR; default $XDG_STATE_HOME/rig-bridge, else ~/.local/state/rig-bridge)")
	root.PersistentFlags().StringVarP(&c.namespace, "namespace", "n", v1alpha1.Namespace, "namespace; a local daemon has one")
}

// stateDir finds the state directory as the daemon does: flag, environment, config.yaml, default. Given is true
// if the daemon would need the flag to take the same one.
func (c *connection) stateDir() (dir string, given bool, err error) {
	if c.dirFlag != "" {
		dir, err = filepath.Abs(c.dirFlag)
		return dir, true, err
	}
	if dir = os.Getenv("RIG_BRIDGE_STATE_DIR"); dir != "" {
		dir, err = filepath.Abs(dir)
		return dir, true, err
	}
	dir, err = baseDir("XDG_STATE_HOME", ".local/state")
	if err != nil {
		return "", false, errors.New("no state directory: HOME is not set; give --state-dir")
	}
	if configured := configuredStateDir(dir); configured != "" {
		dir, err = filepath.Abs(configured)
	}
	return dir, false, err
}

// configuredStateDir reads what config.yaml names. A file that cannot be read is the daemon's to complain about.
func configuredStateDir(state string) string {
	dirs := []string{state}
	if dir, err := baseDir("XDG_CONFIG_HOME", ".config"); err == nil {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		b, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
		if err != nil {
			continue
		}
		var file struct {
			StateDir string `json:"stateDir"`
		}
		_ = yaml.Unmarshal(b, &file) // see above
		return file.StateDir
	}
	return ""
}

// baseDir follows the XDG base directory specification; an empty or relative variable counts as unset.
func baseDir(variable, below string) (string, error) {
	if base := os.Getenv(variable); filepath.IsAbs(base) {
		return filepath.Join(base, "rig-bridge"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, below, "rig-bridge"), nil
}

// dial connects to the daemon. A *notRunningError says that there is none.
func (c *connection) dial(ctx context.Context) (net.Conn, error) {
	dir, given, err := c.stateDir()
	if err != nil {
		return nil, err
	}
	conn, err := socket.Dial(ctx, filepath.Join(dir, socket.File))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, &notRunningError{dir: dir, given: given}
	}
	return conn, err
}

// reachable returns a *notRunningError unless a daemon accepts connections, so that a command can say so before
// layers in between turn the error into something else.
func (c *connection) reachable(ctx context.Context) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}

// config returns a client configuration for the socket.
func (c *connection) config() *rest.Config {
	return &rest.Config{
		Host:           "http://rig-bridge", // a name for the Host header: the socket is what is dialled
		Dial:           func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) },
		QPS:            -1,
		UserAgent:      "rigctl/" + buildVersion(),
		WarningHandler: rest.NewWarningWriter(c.streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true}),
	}
}

// client returns a client for a kind's group that takes and gives unstructured objects.
func (c *connection) client(gv schema.GroupVersion) (rest.Interface, error) {
	cfg := c.config()
	cfg.APIPath, cfg.GroupVersion = apiPath(gv), &gv
	cfg.NegotiatedSerializer = resource.UnstructuredPlusDefaultContentConfig().NegotiatedSerializer
	return rest.RESTClientFor(cfg)
}

// apiPath is where a group is served; that of events has no name and a place of its own.
func apiPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api"
	}
	return "/apis"
}

// ToRESTConfig returns a client configuration for the socket.
func (c *connection) ToRESTConfig() (*rest.Config, error) { return c.config(), nil }

// ToDiscoveryClient returns a client that asks the daemon once which kinds it serves.
func (c *connection) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	c.once.Do(func() {
		client, err := discovery.NewDiscoveryClientForConfig(c.config())
		if err != nil {
			c.err = err
			return
		}
		c.cached = memory.NewMemCacheClient(client)
		plain := restmapper.NewDeferredDiscoveryRESTMapper(c.cached)
		c.mapper = restmapper.NewShortcutExpander(plain, c.cached, nil)
	})
	return c.cached, c.err
}

// ToRESTMapper returns a mapper of all served kinds and their short names.
func (c *connection) ToRESTMapper() (meta.RESTMapper, error) {
	_, err := c.ToDiscoveryClient()
	return c.mapper, err
}

// ToRawKubeConfigLoader returns an empty configuration: rigctl reads no kubeconfig.
func (c *connection) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(*emptyConfig(), nil)
}

// builder selects objects by arguments such as "operation NAME", "op/NAME" or "ws,op".
func (c *connection) builder() *resource.Builder {
	return c.declared().Latest()
}

// declared selects objects without asking the daemon for them: those that files hold.
func (c *connection) declared() *resource.Builder {
	return resource.NewBuilder(c).Unstructured().NamespaceParam(c.namespace).DefaultNamespace().ContinueOnError()
}
