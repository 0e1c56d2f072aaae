package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/rigbridge/rigbridge/api/atomicfile"
	"github.com/rigbridge/rigbridge/api/socket"
	"github.com/rigbridge/rigbridge/config/service"
)

func serviceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "service",
		Short: "Have the system start the daemon for your account and keep it up",
		Args:  cobra.NoArgs,
	}
	c.AddCommand(serviceInstallCommand(), serviceUninstallCommand(), serviceStatusCommand())
	return c
}

func serviceInstallCommand() *cobra.Command {
	s := &settings{}
	var start bool
	var format string
	c := &cobra.Command{
		Use:   "install",
		Short: "Write and enable the systemd user unit",
		Long: "Write and enable the systemd user unit " + service.Unit + ".\n\n" +
			"The unit holds the path of this program, the state directory, the settings that flags and environment give now,\n" +
			"the umask and PATH. At each start the daemon asks the login shell for PATH as well; rigctl doctor shows the result.\n" +
			"Installing again writes the unit anew: give the same flags, or have the settings in config.yaml. After an upgrade\n" +
			"that is not needed: systemctl --user restart rig-bridge. A unit that this command has not written is left alone.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.complete(c); err != nil {
				return err
			}
			svc, err := s.service(c)
			if err != nil {
				return err
			}
			if c.Flags().Changed("print") {
				return printService(c, svc, format)
			}
			return install(c, svc, start)
		},
	}
	s.flags(c)
	c.Flags().BoolVar(&start, "start", false, "start the service, or restart it, and wait until it is ready")
	c.Flags().StringVar(&format, "print", "", "only print what would be written: systemd or launchd; by default that of this system")
	c.Flags().Lookup("print").NoOptDefVal = map[bool]string{true: "launchd", false: "systemd"}[runtime.GOOS == "darwin"]
	return c
}

// service describes the service with these settings. Only what was given is fixed: the rest stays with config.yaml.
func (s *settings) service(c *cobra.Command) (service.Service, error) {
	program, err := ownPath()
	if err != nil {
		return service.Service{}, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return service.Service{}, errors.New("HOME is not set; set it to the account's home directory")
	}
	svc := service.Service{Program: program, Args: []string{"serve", "--state-dir", s.StateDir}, Managed: true,
		Umask: fmt.Sprintf("%04o", umask()), Home: home, LogFile: filepath.Join(s.StateDir, "daemon.log")}
	given := func(flag string, variables ...string) bool {
		return c.Flags().Changed(flag) || first(variables...) != ""
	}
	if given("port", os.Getenv("RIG_BRIDGE_PORT"), os.Getenv("MCP_PORT")) {
		svc.Args = append(svc.Args, "--port", strconv.Itoa(s.Port))
	}
	if given("token-file", os.Getenv("RIG_BRIDGE_TOKEN_FILE")) {
		file, err := filepath.Abs(s.TokenFile)
		if err != nil {
			return svc, fmt.Errorf("token file: %w", err)
		}
		if _, err := os.Stat(file); err != nil {
			return svc, fmt.Errorf("token file: %w; a token file that is given must exist", err)
		}
		svc.Args = append(svc.Args, "--token-file", file)
	}
	if given("log-level", os.Getenv("RIG_BRIDGE_LOG_LEVEL")) {
		svc.Args = append(svc.Args, "--log-level", s.LogLevel)
	}
	for _, name := range []string{"PATH", "XDG_CONFIG_HOME"} {
		if value := os.Getenv(name); value != "" {
			svc.Variables = append(svc.Variables, service.Variable{Name: name, Value: value})
		}
	}
	return svc, nil
}

// umask is the process's own, which can only be read by setting it.
func umask() int {
	mask := syscall.Umask(0o077)
	syscall.Umask(mask)
	return mask
}

// ownPath is the absolute path of this program by the name under which it was called, so that a link that an
// upgrade turns elsewhere stays a link.
func ownPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if strings.Contains(self, string(filepath.Separator)+"go-build") {
		return "", errors.New("this program is a temporary one of go run, which a service cannot use: install it first, with hack/install")
	}
	called, err := exec.LookPath(os.Args[0])
	if err != nil {
		return self, nil
	}
	if called, err = filepath.Abs(called); err != nil || !sameFile(called, self) {
		return self, nil
	}
	return called, nil
}

func sameFile(a, b string) bool {
	x, xerr := os.Stat(a)
	y, yerr := os.Stat(b)
	return xerr == nil && yerr == nil && os.SameFile(x, y)
}

func printService(c *cobra.Command, svc service.Service, format string) error {
	var text []byte
	var err error
	switch format {
	case "systemd":
		text, err = verified(c.Context(), svc)
	case "launchd":
		text, err = svc.Launchd()
	default:
		return fmt.Errorf("%q is no kind of service that is known: --print=systemd or --print=launchd", format)
	}
	if err != nil {
		return err
	}
	_, err = c.OutOrStdout().Write(text)
	return err
}

// verified renders the unit and has systemd check it, where there is a systemd.
func verified(ctx context.Context, svc service.Service) ([]byte, error) {
	text, err := svc.Systemd()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rig-bridge-unit-")
	if err != nil {
		return nil, fmt.Errorf("verify the unit: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, service.Unit)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, fmt.Errorf("verify the unit: %w", err)
	}
	complaints, err := service.Verify(ctx, file)
	if err == nil && complaints != "" {
		return nil, fmt.Errorf("systemd would not take the unit, nothing was written: %s", complaints)
	}
	return text, nil // whether systemd-analyze works is not what matters here
}

// unitFile is where the account's systemd looks for the account's own unit. It may have been started with another
// XDG_CONFIG_HOME than this program, and then has the directory below HOME.
func unitFile(ctx context.Context) (string, error) {
	dirs, err := systemctl(ctx, "show", "--value", "--property=UnitPath")
	if err != nil {
		return "", fmt.Errorf("no systemd works for this account here (%w): use rig-bridge serve, or write the unit elsewhere with rig-bridge service install --print", err)
	}
	conf, err := configHome()
	if err != nil {
		return "", errors.New("HOME is not set; set it to the account's home directory")
	}
	below := filepath.Join(os.Getenv("HOME"), ".config", "systemd", "user")
	if slices.Contains(strings.Fields(dirs), below) {
		return filepath.Join(below, service.Unit), nil
	}
	return filepath.Join(conf, "systemd", "user", service.Unit), nil
}

// Who wrote a unit file.
type owner int

const (
	nobody owner = iota // there is none
	ours
	foreign
)

// ownerOf says who wrote the unit. A link is somebody's too, such as one that masks the unit.
func ownerOf(file string) (owner, error) {
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nobody, nil
	case err != nil:
		return foreign, fmt.Errorf("look at the unit: %w", err)
	case !info.Mode().IsRegular():
		return foreign, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return foreign, fmt.Errorf("read the unit: %w", err)
	}
	if strings.HasPrefix(string(text), service.Marker+"\n") {
		return ours, nil
	}
	return foreign, nil
}

func refuseForeign(file string) error {
	return fmt.Errorf("%s was not written by rig-bridge service and is left alone: move it away first, or change it yourself", file)
}

func install(c *cobra.Command, svc service.Service, start bool) error {
	ctx, out := c.Context(), c.OutOrStdout()
	if runtime.GOOS != "linux" {
		return fmt.Errorf("only systemd is installed into: write the agent with\n  rig-bridge service install --print=launchd > ~/Library/LaunchAgents/%s.plist\n  launchctl bootstrap gui/$(id -u) ~/Library/LaunchAgents/%[1]s.plist", service.Label)
	}
	file, err := unitFile(ctx)
	if err != nil {
		return err
	}
	switch who, err := ownerOf(file); {
	case err != nil:
		return err
	case who == foreign:
		return refuseForeign(file)
	}
	text, err := verified(ctx, svc)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("write the unit: %w", err)
	}
	if err := atomicfile.Write(file, text, 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{{"daemon-reload"}, {"--quiet", "enable", service.Unit}} {
		if _, err := systemctl(ctx, args...); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "Installed %s: the daemon starts when you log in.\n", file)
	if start {
		return startService(ctx, out)
	}
	fmt.Fprintf(out, "Start it now: systemctl --user restart %s\n", service.Unit)
	fmt.Fprintf(out, "Have it run from boot on, without a login: loginctl enable-linger\n")
	return nil
}

// startService starts the service anew and waits until the daemon is ready.
func startService(ctx context.Context, out io.Writer) error {
	_, failed := systemctl(ctx, "restart", service.Unit)
	u, err := showUnit(ctx)
	if err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("the service does not start: %s; more: journalctl --user -u %s", first(u["StatusText"], failed.Error()), service.Unit)
	}
	fmt.Fprintln(out, u["StatusText"])
	return nil
}

func serviceUninstallCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "uninstall",
		Short: "Stop the service and remove its unit; the state directory stays",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return uninstall(c.Context(), c.OutOrStdout())
		},
	}
}

func uninstall(ctx context.Context, out io.Writer) error {
	file, err := unitFile(ctx)
	if err != nil {
		return err
	}
	switch who, err := ownerOf(file); {
	case err != nil:
		return err
	case who == nobody:
		fmt.Fprintf(out, "%s is not there: nothing to uninstall.\n", file)
		return nil
	case who == foreign:
		return refuseForeign(file)
	}
	if _, err := systemctl(ctx, "--quiet", "disable", "--now", service.Unit); err != nil {
		return err
	}
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("remove the unit: %w", err)
	}
	if _, err := systemctl(ctx, "daemon-reload"); err != nil {
		return err
	}
	fmt.Fprintf(out, "Removed %s. Threads, receipts and the token are still in the state directory.\n", file)
	return nil
}

// systemctl asks the account's systemd. Its error says what systemd said.
func systemctl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "systemctl", append([]string{"--user"}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if said := strings.TrimSpace(stderr.String()); err != nil && said != "" {
		line, _, _ := strings.Cut(said, "\n")
		return "", errors.New(line)
	}
	if err != nil {
		return "", fmt.Errorf("systemctl: %w", err)
	}
	return string(out), nil
}

// showUnit reads what systemd knows of the service.
func showUnit(ctx context.Context) (map[string]string, error) {
	text, err := systemctl(ctx, "show", service.Unit, "--property=LoadState,FragmentPath,UnitFileState,ActiveState,SubState,MainPID,NRestarts,Result,StatusText,ActiveEnterTimestamp")
	if err != nil {
		return nil, err
	}
	u := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		u[name] = value
	}
	return u, nil
}

func serviceStatusCommand() *cobra.Command {
	s := &settings{}
	c := &cobra.Command{
		Use:   "status",
		Short: "Say whether the service is installed and runs; exit 1 if it does not run",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.complete(c); err != nil {
				return err
			}
			return serviceStatus(c.Context(), c.OutOrStdout(), s)
		},
	}
	s.flags(c)
	return c
}

func serviceStatus(ctx context.Context, out io.Writer, s *settings) error {
	if _, err := unitFile(ctx); err != nil {
		return err
	}
	u, err := showUnit(ctx)
	if err != nil {
		return err
	}
	if u["LoadState"] != "loaded" {
		fmt.Fprintf(out, "unit     none (%s)\n", u["LoadState"])
		otherDaemon(ctx, out, s)
		return errors.New("the service is not installed: rig-bridge service install --start")
	}
	whose := "not written by rig-bridge service"
	if who, err := ownerOf(u["FragmentPath"]); err == nil && who == ours {
		whose = "written by rig-bridge service"
	}
	fmt.Fprintf(out, "unit     %s, %s, %s\n", u["FragmentPath"], u["UnitFileState"], whose)
	fmt.Fprintf(out, "state    %s (%s) since %s, %s restarts\n", u["ActiveState"], u["SubState"], first(u["ActiveEnterTimestamp"], "ever"), u["NRestarts"])
	if u["ActiveState"] != "active" {
		if said := u["StatusText"]; said != "" {
			fmt.Fprintf(out, "said     %s\n", said)
		}
		otherDaemon(ctx, out, s)
		return fmt.Errorf("the service does not run (%s); why: journalctl --user -u %s", u["Result"], service.Unit)
	}
	fmt.Fprintf(out, "daemon   pid %s: %s\n", u["MainPID"], u["StatusText"])
	return nil
}

// otherDaemon tells of a daemon on the state directory that is not the service. Its address file may be of a life
// that ended without a goodbye: the number in it is somebody else's by now, and means nothing unless the socket
// answers.
func otherDaemon(ctx context.Context, out io.Writer, s *settings) {
	var e struct {
		URL string `json:"url"`
		PID int    `json:"pid"`
	}
	b, err := os.ReadFile(endpointFile(s))
	known := err == nil && json.Unmarshal(b, &e) == nil
	conn, err := socket.Dial(ctx, socketPath(s))
	if err == nil {
		_ = conn.Close() // nothing was asked
	}
	switch {
	case err == nil && known:
		fmt.Fprintf(out, "daemon   pid %d, which is not the service, serves %s\n", e.PID, e.URL)
	case err == nil:
		fmt.Fprintf(out, "daemon   one that is not the service answers on %s\n", socketPath(s))
	case known:
		fmt.Fprintf(out, "daemon   none; %s is stale, from a daemon that ended without a goodbye\n", endpointFile(s))
	default:
		fmt.Fprintf(out, "daemon   none on %s\n", s.StateDir)
	}
}

// notify tells the service manager, if one has started this process, that the daemon works, or why it does not.
// Commands do not inherit the way to it.
func notify(err error, ready string) {
	state := systemd.SdNotifyReady + "\nSTATUS=" + ready
	if err != nil {
		state = "STATUS=" + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	_, _ = systemd.SdNotify(true, state) // a manager that cannot be told finds out by itself
}
