package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// tunnelName is the name of the tunnel that most people have.
const tunnelName = "chatgpt"

// tunnelStopWait is how long tunnel run waits for the client to end.
const tunnelStopWait = 30 * time.Second

func tunnelCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "tunnel",
		Short: "Let ChatGPT reach this daemon through OpenAI's tunnel-client",
		Long: "Let ChatGPT reach this daemon through OpenAI's tunnel-client.\n\n" +
			"The daemon runs the client and keeps it up; these commands tell it to. The key is never given on a command line.",
		Args: cobra.NoArgs,
	}
	c.AddCommand(tunnelRunCommand(), tunnelStartCommand(), tunnelStopCommand(), tunnelStatusCommand(), tunnelInstallCommand())
	return c
}

// tunnelAccess is how a tunnel command reaches the daemon, and the tunnel that it is about.
type tunnelAccess struct {
	settings
	key types.NamespacedName
	api client.WithWatch
	out io.Writer
}

func (a *tunnelAccess) flags(c *cobra.Command) {
	c.Flags().StringVar(&a.StateDir, "state-dir", "", "the daemon's state directory (RIG_BRIDGE_STATE_DIR; default $XDG_STATE_HOME/rig-bridge, else ~/.local/state/rig-bridge)")
	c.Flags().StringVar(&a.key.Name, "name", tunnelName, "name of the tunnel")
}

// connect finds the daemon.
func (a *tunnelAccess) connect(c *cobra.Command) (err error) {
	a.LogLevel = "info"
	if err := a.complete(c); err != nil {
		return err
	}
	a.key.Namespace, a.out = v1alpha1.Namespace, c.OutOrStdout()
	a.api, err = apiClient(c.Context(), &a.settings)
	return err
}

// get reads the tunnel; nil if there is none.
func (a *tunnelAccess) get(ctx context.Context) (*v1alpha1.Tunnel, error) {
	t := &v1alpha1.Tunnel{}
	err := a.api.Get(ctx, a.key, t)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, a.explain(err)
	}
	return t, nil
}

// explain says of an error that the daemon is gone, if that is it.
func (a *tunnelAccess) explain(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		return notRunning(&a.settings)
	}
	return err
}

func tunnelRunCommand() *cobra.Command {
	a, given := &tunnelAccess{}, &tunnelInput{}
	c := &cobra.Command{
		Use:   "run",
		Short: "Keep the tunnel up until interrupted, and tell how it is",
		Long: "Keep the tunnel up until interrupted, and tell how it is. At the end the tunnel is suspended: tunnel start leaves\n" +
			"it to the daemon instead.\n\n" + tunnelInputHelp,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.declare(c, given); err != nil {
				return err
			}
			err := a.follow(c.Context())
			if c.Context().Err() == nil {
				return err
			}
			fmt.Fprintln(a.out, "Stopping the tunnel")
			return a.suspend(context.WithoutCancel(c.Context()))
		},
	}
	a.flags(c)
	given.flags(c)
	return c
}

func tunnelStartCommand() *cobra.Command {
	a, given := &tunnelAccess{}, &tunnelInput{}
	c := &cobra.Command{
		Use:   "start",
		Short: "Have the daemon keep the tunnel up, now and whenever it runs",
		Long:  "Have the daemon keep the tunnel up, now and whenever it runs.\n\n" + tunnelInputHelp,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.declare(c, given); err != nil {
				return err
			}
			_, err := fmt.Fprintf(a.out, "The tunnel %s is kept up from now on. See how it is with: rig-bridge tunnel status\n", a.key.Name)
			return err
		},
	}
	a.flags(c)
	given.flags(c)
	return c
}

func tunnelStopCommand() *cobra.Command {
	a := &tunnelAccess{}
	c := &cobra.Command{
		Use:   "stop",
		Short: "Stop the tunnel, and do not forget it",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.connect(c); err != nil {
				return err
			}
			if err := a.suspend(c.Context()); err != nil {
				return err
			}
			_, err := fmt.Fprintf(a.out, "The tunnel %s is stopped. Go on with: rig-bridge tunnel start\n", a.key.Name)
			return err
		},
	}
	a.flags(c)
	return c
}

func tunnelStatusCommand() *cobra.Command {
	a := &tunnelAccess{}
	c := &cobra.Command{
		Use:   "status",
		Short: "Tell how the tunnel is; exit 1 unless it is ready",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.connect(c); err != nil {
				return err
			}
			t, err := a.get(c.Context())
			if err != nil {
				return err
			}
			if t == nil {
				return a.unknown()
			}
			printTunnel(a.out, t, time.Now())
			if !apimeta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionReady) {
				return fmt.Errorf("the tunnel %s is not ready", t.Name)
			}
			return nil
		},
	}
	a.flags(c)
	return c
}

func (a *tunnelAccess) unknown() error {
	return fmt.Errorf("there is no tunnel %s; make it with: rig-bridge tunnel start", a.key.Name)
}

// printTunnel tells everything about a tunnel.
func printTunnel(out io.Writer, t *v1alpha1.Tunnel, now time.Time) {
	c := readiness(t)
	fmt.Fprintf(out, "tunnel     %s (%s)\nstate      %s\n", t.Name, t.Spec.TunnelID, tunnelState(c, now))
	if c.Message != "" {
		fmt.Fprintf(out, "why        %s\n", c.Message)
	}
	if p := t.Status.Process; p != nil {
		fmt.Fprintf(out, "client     %s, pid %d\n", p.Command, p.PID)
	}
	if at := t.Status.LastPollTime; at != nil {
		fmt.Fprintf(out, "last poll  %s ago\n", duration.HumanDuration(now.Sub(at.Time)))
	}
	fmt.Fprintf(out, "restarts   %d\n", t.Status.Restarts)
	if t.Status.LogFile != "" {
		fmt.Fprintf(out, "log        %s\n", t.Status.LogFile)
	}
}

// readiness is the tunnel's Ready condition, of a tunnel that nobody has looked at, too.
func readiness(t *v1alpha1.Tunnel) metav1.Condition {
	if c := apimeta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonClientStarting, LastTransitionTime: t.CreationTimestamp}
}

// tunnelState says in a few words how a tunnel is, and since when.
func tunnelState(c metav1.Condition, now time.Time) string {
	state := "degraded"
	switch {
	case c.Status == metav1.ConditionTrue:
		state = "ready"
	case c.Status == metav1.ConditionUnknown:
		state = "starting"
	case c.Reason == v1alpha1.ReasonSuspended:
		state = "suspended"
	}
	return fmt.Sprintf("%s since %s (%s): %s", state, c.LastTransitionTime.Local().Format(time.DateTime),
		duration.HumanDuration(now.Sub(c.LastTransitionTime.Time)), c.Reason)
}

// declare makes the tunnel, or changes it as given, and has it kept up.
func (a *tunnelAccess) declare(c *cobra.Command, given *tunnelInput) error {
	if err := a.connect(c); err != nil {
		return err
	}
	if err := given.read(); err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		t, err := a.get(c.Context())
		if err != nil {
			return err
		}
		made := t == nil
		if made {
			t = &v1alpha1.Tunnel{ObjectMeta: metav1.ObjectMeta{Namespace: a.key.Namespace, Name: a.key.Name}}
		}
		if err := given.apply(t, tunnelDir(&a.settings)); err != nil {
			return err
		}
		t.Spec.Suspended = false
		if made {
			return a.explain(a.api.Create(c.Context(), t))
		}
		return a.explain(a.api.Update(c.Context(), t))
	})
}

// follow prints what becomes of the tunnel until ctx is done.
func (a *tunnelAccess) follow(ctx context.Context) error {
	last := ""
	for {
		t, err := a.get(ctx)
		if err != nil {
			return err
		}
		if t == nil {
			return fmt.Errorf("the tunnel %s was deleted", a.key.Name)
		}
		last = a.tell(t, last)
		w, err := a.api.Watch(ctx, &v1alpha1.TunnelList{}, client.InNamespace(a.key.Namespace), client.MatchingFields{"metadata.name": a.key.Name},
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: t.ResourceVersion}})
		if err != nil {
			return a.explain(err)
		}
		if last, err = a.followWatch(ctx, w, last); err != nil {
			return err
		}
	}
}

// followWatch prints until the watch ends, which every watch does some time.
func (a *tunnelAccess) followWatch(ctx context.Context, w watch.Interface, last string) (string, error) {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case e, open := <-w.ResultChan():
			t, ok := e.Object.(*v1alpha1.Tunnel)
			if !open || !ok {
				return last, nil
			}
			if last = a.tell(t, last); e.Type == watch.Deleted {
				return last, fmt.Errorf("the tunnel %s was deleted", a.key.Name)
			}
		}
	}
}

// tell prints how the tunnel is, if that is news.
func (a *tunnelAccess) tell(t *v1alpha1.Tunnel, last string) string {
	c := readiness(t)
	text := fmt.Sprintf("%s %s: %s", t.Name, t.Status.Phase, c.Message)
	if t.Status.Restarts > 0 {
		text += fmt.Sprintf(" Restarts: %d.", t.Status.Restarts)
	}
	if text != last && c.Message != "" {
		fmt.Fprintf(a.out, "%s %s\n", time.Now().Format(time.TimeOnly), text)
	}
	return text
}

// suspend stops the tunnel and returns when its client has ended.
func (a *tunnelAccess) suspend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tunnelStopWait)
	defer cancel()
	t, err := a.get(ctx)
	if err != nil {
		return err
	}
	if t == nil {
		return a.unknown()
	}
	if err := a.api.Patch(ctx, t, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspended":true}}`))); err != nil {
		return a.explain(err)
	}
	for {
		if t, err = a.get(ctx); err != nil || t == nil {
			return err
		}
		if t.Status.Phase == v1alpha1.TunnelSuspended && t.Status.Process == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the client of tunnel %s has not ended: %s", t.Name, readiness(t).Message)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// notRunning says how to start the daemon.
func notRunning(s *settings) error {
	return fmt.Errorf("no rig-bridge runs on %s; start it with: rig-bridge serve, or have it kept up with: rig-bridge service install --start", s.StateDir)
}

// absolute makes a path one that the daemon understands, too.
func absolute(path string) (string, error) {
	p, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("the working directory is not known: %w", err)
	}
	return p, nil
}

// homeOrEmpty is the account's home directory, empty if it is not known.
func homeOrEmpty() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return home
}
