package tunnel

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/runner"
)

// TestLife follows a tunnel from its creation over suspension to its deletion.
func TestLife(t *testing.T) {
	w := newWorld(t)
	made := w.create()
	first := w.turn("ready", isReady)
	if p := first.Status.Process; p == nil || int(p.PID) != w.life(0).PID || p.StartTime == "" || p.Command != Program || first.Status.Restarts != 0 ||
		first.Status.Phase != v1alpha1.TunnelReady || first.Status.LastPollTime == nil || ready(first).ObservedGeneration != first.Generation {
		t.Errorf("%+v", first.Status)
	}
	w.change(func(o *v1alpha1.Tunnel) { o.Spec.Suspended = true })
	s := w.turn("suspended", func(o *v1alpha1.Tunnel) bool {
		return o.Status.Phase == v1alpha1.TunnelSuspended && o.Status.Process == nil
	})
	if running(made) != 0 || ready(s).Status != metav1.ConditionFalse || w.Active() != 0 {
		t.Errorf("suspended: %+v", s.Status)
	}
	w.change(func(o *v1alpha1.Tunnel) { o.Spec.Suspended = false })
	if again := w.turn("ready again", isReady); again.Status.Restarts != 0 || w.lives() != 2 || w.Active() != 1 {
		t.Errorf("%d lives, %+v", w.lives(), again.Status)
	}
	w.change(func(o *v1alpha1.Tunnel) { o.Spec.TunnelID = "tunnel_another" })
	w.turn("another client", func(*v1alpha1.Tunnel) bool { return w.lives() == 3 })
	if other := w.turn("ready with another ID", isReady); other.Status.Restarts != 0 || !slices.Contains(w.life(2).Args, "tunnel_another") {
		t.Errorf("%v, %+v", w.life(2).Args, other.Status)
	}
	write(t, filepath.Join(filepath.Dir(w.Dir), "key"), "sk-another-key-0123456789", 0o600)
	w.turn("a client with another key", func(*v1alpha1.Tunnel) bool { return w.lives() == 4 })
	if other := w.turn("ready with another key", isReady); other.Status.Restarts != 0 {
		t.Errorf("%+v", other.Status)
	}
	write(t, KeyFile(w.Dir, made.Name), "sk-kept-by-us", 0o600)
	w.must(w.api.Delete(t.Context(), w.get()))
	w.turn("gone", func(o *v1alpha1.Tunnel) bool { return o == nil })
	if running(made) != 0 {
		t.Error("the client of a deleted tunnel runs")
	}
	if left, _ := filepath.Glob(filepath.Join(w.Dir, "*")); len(left) > 0 {
		t.Errorf("files of a deleted tunnel: %v", left)
	}
	w.quietAfterDelete()
}

func (w *world) quietAfterDelete() {
	if _, err := w.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: w.key}); err != nil || len(w.tunnels) != 0 {
		w.t.Errorf("%v, %v", w.tunnels, err)
	}
}

// TestExits has the client end at once, again and again: the pauses grow, and status says why, since when and how often.
func TestExits(t *testing.T) {
	w := newWorld(t)
	w.behave("exit=3")
	w.create()
	first := w.turn("the end", because(v1alpha1.ReasonClientExited))
	since := ready(first).LastTransitionTime
	for i, pause := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute} {
		o := w.turn(fmt.Sprintf("end %d", i+1), func(o *v1alpha1.Tunnel) bool {
			return strings.Contains(ready(o).Message, fmt.Sprintf("again after %s.", pause)) && o.Status.Restarts == int32(i) && o.Status.Process == nil
		})
		if w.lives() != i+1 || !strings.Contains(ready(o).Message, "exited with code 3") || o.Status.Phase != v1alpha1.TunnelDegraded {
			t.Fatalf("after %d ends: %d lives, %+v", i+1, w.lives(), o.Status)
		}
		if !ready(o).LastTransitionTime.Time.Equal(since.Time) {
			t.Errorf("degraded since %v, was %v", ready(o).LastTransitionTime, since)
		}
		w.pass(pause - 500*time.Millisecond)
		if w.quiet(); w.lives() != i+1 {
			t.Fatalf("the pause of %s was not kept", pause)
		}
		w.pass(time.Second)
		w.turn("the next life", func(*v1alpha1.Tunnel) bool { return w.lives() == i+2 })
	}
	w.turn("the last end", func(o *v1alpha1.Tunnel) bool { return o.Status.Restarts == 7 && o.Status.Process == nil })
	w.pass(time.Minute)
	w.heal()
	if o := w.turn("ready", isReady); o.Status.Restarts != 8 || !ready(o).LastTransitionTime.After(since.Time) {
		t.Errorf("%+v", o.Status)
	}
}

// TestExitsCutOff starts no client again while the control plane cannot be reached, unless the watchdog is off.
func TestExitsCutOff(t *testing.T) {
	w := newWorld(t)
	w.behave("exit-after=20ms")
	w.reachable(false)
	w.create(func(o *v1alpha1.Tunnel) { o.Spec.ControlPlaneURL = "https://control.example" })
	w.turn("the end", because(v1alpha1.ReasonClientExited))
	w.pass(time.Minute)
	o := w.turn("cut off", because(v1alpha1.ReasonControlPlaneUnreachable))
	if !strings.Contains(ready(o).Message, "control.example:443") {
		t.Error(ready(o).Message)
	}
	for range 3 {
		w.pass(10 * time.Second)
		w.quiet()
	}
	if len(w.dialed) < 4 || w.dialed[0] != "control.example:443" || w.lives() != 1 {
		t.Errorf("%d lives, dialled %v", w.lives(), w.dialed)
	}
	w.heal()
	w.reachable(true)
	w.pass(10 * time.Second)
	if o := w.turn("ready", isReady); o.Status.Restarts != 1 {
		t.Errorf("%+v", o.Status)
	}

	w.behave("exit-after=20ms")
	w.reachable(false)
	w.change(func(o *v1alpha1.Tunnel) { o.Spec.Watchdog.Disabled, o.Spec.TunnelID = true, "tunnel_another" })
	for want := 3; want <= 4; want++ {
		w.turn("a life without a watchdog", func(*v1alpha1.Tunnel) bool {
			w.pass(time.Second)
			return w.lives() == want
		})
	}
}

// TestStalls has a client that runs and polls no more.
func TestStalls(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.turn("ready", isReady)
	w.behave("poll=0s") // by our clock this gets older
	w.pass(40 * time.Second)
	if o := w.quiet(); !isReady(o) {
		t.Fatalf("40 s after a poll: %+v", o.Status)
	}
	w.reachable(false)
	w.pass(30 * time.Second)
	o := w.turn("degraded", because(v1alpha1.ReasonControlPlaneUnreachable))
	since := ready(o).LastTransitionTime
	if w.quiet(); w.lives() != 1 {
		t.Fatal("started again while cut off")
	}
	w.reachable(true)
	w.pass(10 * time.Second)
	w.turn("another life", func(*v1alpha1.Tunnel) bool { return w.lives() == 2 })
	o = w.quiet() // its polls are as old as those before
	if c := ready(o); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonPollStale || !c.LastTransitionTime.Time.Equal(since.Time) || o.Status.Restarts != 1 {
		t.Errorf("%+v", o.Status)
	}
	w.pass(30 * time.Second)
	if w.quiet(); w.lives() != 2 {
		t.Error("a client had less time than its predecessor")
	}
	w.heal()
	w.pass(0)
	w.turn("ready again", func(o *v1alpha1.Tunnel) bool {
		w.pass(time.Second)
		w.heal()
		return isReady(o)
	})
}

// TestNeverReady has clients that run and do not work in one way each: none is ever said to be ready, all are
// started again when their time is over.
func TestNeverReady(t *testing.T) {
	for how, reason := range map[string]string{
		"hang": v1alpha1.ReasonClientUnresponsive, "no-url": v1alpha1.ReasonClientUnresponsive, "url=http://192.0.2.1:80": v1alpha1.ReasonClientUnresponsive,
		"poll=garbage": v1alpha1.ReasonClientUnresponsive, "poll=never": v1alpha1.ReasonPollStale, "ready=no": v1alpha1.ReasonClientNotReady,
		"ready=auth": v1alpha1.ReasonClientNotReady,
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.behave(how)
			w.create()
			never := func(o *v1alpha1.Tunnel) *v1alpha1.Tunnel {
				if isReady(o) {
					t.Fatalf("said to be ready: %+v", o.Status)
				}
				return o
			}
			url, _ := w.files(w.key.Name)
			w.turn("running", func(*v1alpha1.Tunnel) bool {
				_, err := os.Stat(url)
				return w.lives() == 1 && (err == nil || how == "hang" || how == "no-url")
			})
			if o := never(w.quiet()); ready(o).Reason != v1alpha1.ReasonClientStarting || o.Status.Phase != v1alpha1.TunnelStarting {
				t.Errorf("at first: %+v", o.Status)
			}
			for range 6 { // 66 s in all
				w.pass(11 * time.Second)
				never(w.get())
			}
			w.turn("another life", func(o *v1alpha1.Tunnel) bool {
				never(o)
				return w.lives() == 2
			})
			if o := never(w.quiet()); ready(o).Reason != reason || ready(o).Status != metav1.ConditionFalse || o.Status.Restarts != 1 {
				t.Errorf("%+v", o.Status)
			}
		})
	}
}

// TestRefusesTerm kills a client that does not end when asked, and what it started in a session of its own.
func TestRefusesTerm(t *testing.T) {
	w := newWorld(t)
	w.behave("refuse-term", "child")
	made := w.create()
	w.turn("ready", isReady)
	if n := running(made); n < 2 {
		t.Fatalf("%d processes", n)
	}
	w.change(func(o *v1alpha1.Tunnel) { o.Spec.Suspended = true })
	w.turn("suspended", func(o *v1alpha1.Tunnel) bool { return o.Status.Process == nil })
	if n := running(made); n != 0 {
		t.Errorf("%d processes go on", n)
	}
}

// TestRouteChanges starts the client again on another route, once, when the control plane can be reached over it.
func TestRouteChanges(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.turn("ready", isReady)
	w.reachable(false)
	for _, route := range []string{"", "a"} { // a gap in the same route
		w.routes.turn(route)
		w.routesChanged()
		w.quiet()
	}
	w.routes.turn("b")
	w.routesChanged()
	if o := w.quiet(); w.lives() != 1 || !isReady(o) { // it still works
		t.Fatalf("%d lives: %+v", w.lives(), o.Status)
	}
	w.reachable(true)
	w.routesChanged()
	w.turn("another life", func(*v1alpha1.Tunnel) bool {
		w.pass(100 * time.Millisecond) // over the pause, as the first one lived so short
		return w.lives() == 2
	})
	w.heal()
	if o := w.turn("ready again", isReady); o.Status.Restarts != 1 {
		t.Errorf("%+v", o.Status)
	}
	w.routesChanged()
	if w.quiet(); w.lives() != 2 {
		t.Error("started again on the same route")
	}
}

// TestNextLife ends the daemon without a goodbye while a client runs: the next one stops it before it starts its
// own, also when the record of it was lost.
func TestNextLife(t *testing.T) {
	for name, recorded := range map[string]bool{"recorded": true, "not recorded": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.behave("refuse-term")
			made := w.create()
			o := w.turn("ready", isReady)
			if !recorded {
				o.Status.Process = nil
				w.must(w.api.Status().Update(t.Context(), o))
			}
			before := w.Reconciler
			w.Reconciler = &Reconciler{Client: before.Client, Live: before.Live, Runner: runner.New(), Now: before.Now, Log: before.Log, Dir: before.Dir,
				ServerURL: before.ServerURL, TokenFile: before.TokenFile, Environ: before.Environ, Home: before.Home, Routes: before.Routes, Dial: before.Dial}
			w.must(w.Adopt(t.Context()))
			if o := w.get(); isReady(o) || ready(o).Reason != v1alpha1.ReasonClientStarting {
				t.Errorf("what the life before said still counts: %+v", o.Status)
			}
			w.change(func(o *v1alpha1.Tunnel) { o.Spec.Suspended = true })
			if o := w.turn("settled", func(o *v1alpha1.Tunnel) bool { return strings.Contains(ready(o).Message, "no client runs") }); running(made) != 0 || o.Status.Process != nil {
				t.Errorf("%d of the life before run: %+v", running(made), o.Status)
			}
			<-before.tunnels[w.key].child.done // what is left of that life in this process would take ours for its own
			w.change(func(o *v1alpha1.Tunnel) { o.Spec.Suspended = false })
			if o := w.turn("ready again", isReady); o.Status.Restarts != 0 || w.lives() != 2 || running(made) != 1 {
				t.Errorf("%d lives, %d run, %+v", w.lives(), running(made), o.Status)
			}
		})
	}
}

// TestTroubleIsRemembered keeps "degraded since" over a restart of the daemon.
func TestTroubleIsRemembered(t *testing.T) {
	w := newWorld(t)
	w.behave("exit=3")
	w.create()
	since := ready(w.turn("the end", because(v1alpha1.ReasonClientExited))).LastTransitionTime
	w.behave("hang")
	w.tunnels = nil
	w.pass(time.Hour)
	w.must(w.Adopt(t.Context()))
	w.turn("another life", func(*v1alpha1.Tunnel) bool { return w.lives() == 2 })
	if c := ready(w.quiet()); c.Status != metav1.ConditionFalse || !c.LastTransitionTime.Time.Equal(since.Time) {
		t.Errorf("%+v, since %v", c, since)
	}
}

// TestDrain stops the client, says so, and starts no other.
func TestDrain(t *testing.T) {
	w := newWorld(t)
	made := w.create()
	w.turn("ready", isReady)
	w.must(w.Drain(t.Context()))
	if o := w.get(); ready(o).Reason != v1alpha1.ReasonBridgeStopped || o.Status.Process != nil || running(made) != 0 {
		t.Errorf("%d run, %+v", running(made), o.Status)
	}
	if w.quiet(); w.lives() != 1 {
		t.Error("started again")
	}
}

// TestWhatIsMissing says what is missing, and goes on by itself when it is there.
func TestWhatIsMissing(t *testing.T) {
	w := newWorld(t)
	program, key := filepath.Join(w.bin, Program), filepath.Join(filepath.Dir(w.Dir), "key")
	w.must(os.Rename(program, program+".away"))
	w.must(os.Chmod(key, 0o644))
	w.create()
	o := w.turn("no client", because(v1alpha1.ReasonClientNotFound))
	if !strings.Contains(ready(o).Message, "rig-bridge tunnel install") || ready(o).Status != metav1.ConditionFalse {
		t.Error(ready(o).Message)
	}
	w.must(os.Rename(program+".away", program))
	w.pass(retry)
	o = w.turn("an open key", because(v1alpha1.ReasonCredentialUnusable))
	if !strings.Contains(ready(o).Message, "chmod 600") {
		t.Error(ready(o).Message)
	}
	w.must(os.Chmod(key, 0o600))
	w.change(func(o *v1alpha1.Tunnel) { o.Spec.Watchdog.IntervalSeconds = 5 }) // whoever changes something need not wait
	if o := w.turn("ready", isReady); o.Status.Restarts != 0 {
		t.Errorf("%+v", o.Status)
	}
	w.change(func(o *v1alpha1.Tunnel) {
		o.Spec.ClientPath = write(t, filepath.Join(w.bin, "text"), "no program", 0o755)
	})
	o = w.turn("no program", because(v1alpha1.ReasonClientUnusable))
	if !strings.Contains(ready(o).Message, "exec format error") {
		t.Error(ready(o).Message)
	}
}

// TestSecrets looks for the key and the bearer in everything that others can see.
func TestSecrets(t *testing.T) {
	w := newWorld(t)
	w.Environ = func(context.Context) []string {
		return []string{"PATH=/usr/bin:/bin", "CONTROL_PLANE_API_KEY=" + theKey, "OPENAI_API_KEY=" + theKey}
	}
	w.behave("leak")
	w.create()
	o := w.turn("ready", isReady)
	seen := fmt.Sprintf("%+v %+v", o, w.life(0))
	for _, name := range []string{"cmdline", "environ"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", w.life(0).PID, name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		seen += string(b)
	}
	for _, file := range []string{o.Status.LogFile} {
		b, err := os.ReadFile(file)
		w.must(err)
		if !strings.Contains(string(b), "the secret is [secret] and that was it\nthe secret is Bearer [secret] and that was it\n") {
			t.Errorf("the client's output: %q", b)
		}
		seen += string(b)
	}
	for _, secret := range []string{theKey, theToken} {
		if strings.Contains(seen, secret) {
			t.Errorf("%s can be seen in %s", secret, seen)
		}
	}
}

// TestForcedAway stops the client of a tunnel whose finalizer somebody took away, before that of its successor starts.
func TestForcedAway(t *testing.T) {
	w := newWorld(t)
	w.behave("refuse-term")
	made := w.create()
	o := w.turn("ready", isReady)
	o.Finalizers = nil
	w.must(w.api.Update(t.Context(), o))
	w.must(w.api.Delete(t.Context(), o))
	if w.get() != nil {
		t.Fatal("it is still there")
	}
	next := w.create()
	w.turn("ready", func(o *v1alpha1.Tunnel) bool { return isReady(o) && o.UID == next.UID && w.lives() == 2 })
	if n := running(made); n != 0 {
		t.Errorf("%d of the first go on", n)
	}
}
