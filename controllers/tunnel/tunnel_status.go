package tunnel

import (
	"context"
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// pollEvery is how much newer a poll has to be to be written to status for its own sake.
const pollEvery = 30 * time.Second

// trouble is why a tunnel is not ready.
type trouble struct{ reason, message string }

// rememberedTrouble is the trouble that status tells of, which an earlier life of the daemon saw.
func rememberedTrouble(t *v1alpha1.Tunnel) trouble {
	told := apimeta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady)
	if told == nil || told.Status != metav1.ConditionFalse {
		return trouble{}
	}
	switch told.Reason {
	case v1alpha1.ReasonSuspended, v1alpha1.ReasonBridgeStopped, v1alpha1.ReasonClosing:
		return trouble{}
	}
	return trouble{told.Reason, told.Message}
}

// pollClock dates a client's polls. The client's clock is believed as long as it does not run ahead of ours.
type pollClock struct {
	value time.Time // as the client gave it
	at    time.Time // when it was, by our clock
}

// see takes a value; the zero one says that there was no poll.
func (p *pollClock) see(value, now time.Time) {
	if value.Equal(p.value) {
		return
	}
	p.value, p.at = value, value
	if value.After(now) {
		p.at = now
	}
}

// look finds out in the background how client, route and control plane are.
func (r *Reconciler) look(s *supervised) {
	t, c, began := s.object, s.child, r.Now()
	s.prompt = false
	r.background(s, func() func() {
		ctx := context.Background() // each step has its own limit
		var h health
		route := r.Routes.Current()
		if c != nil {
			h = askHealth(ctx, c.url)
		}
		if !r.needsControlPlane(s, c, h, route) {
			return func() { s.lookedAt(c, began, nil) }
		}
		err := r.reach(ctx, t)
		return func() { s.lookedAt(c, began, err) }
	})
}

// needsControlPlane takes what the client says and tells whether something depends on the control plane.
func (r *Reconciler) needsControlPlane(s *supervised, c *child, h health, route string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child != c {
		return false
	}
	if c == nil {
		return true
	}
	s.hear(h, route, r.Now())
	return s.fault != ""
}

// lookedAt ends a look, unless it was at another client.
func (s *supervised) lookedAt(c *child, began time.Time, cutOff error) {
	if s.child == c {
		s.looked, s.cutOff = began, cutOff
	}
}

// pollLimit is how old a client's last successful poll may be.
func pollLimit(spec v1alpha1.TunnelSpec) time.Duration {
	return time.Duration(spec.Watchdog.PollTimeoutSeconds) * time.Second
}

// hear takes what the client says, with s locked.
func (s *supervised) hear(h health, route string, now time.Time) {
	c, limit := s.child, pollLimit(s.object.Spec)
	if c.route == "" {
		c.route = route // it had nothing to lose
	}
	if h.err == nil {
		s.poll.see(h.poll, now)
	}
	wrong := s.wrong(h, now, limit)
	s.working = wrong == trouble{}
	if s.working {
		s.worked, s.trouble = s.poll.at, trouble{}
	}
	since := c.began
	if s.worked.After(since) {
		since = s.worked
	}
	late := now.Sub(since) > limit
	if !s.working && (late || !s.worked.IsZero()) {
		s.trouble = wrong
	}
	s.fault = ""
	switch {
	case late:
		s.fault = wrong.reason
	case route != "" && route != c.route:
		s.fault = v1alpha1.ReasonRouteChanged
	}
}

// wrong says what keeps the client from being ready; nothing if it is.
func (s *supervised) wrong(h health, now time.Time, limit time.Duration) trouble {
	switch {
	case h.err != nil:
		return trouble{v1alpha1.ReasonClientUnresponsive, fmt.Sprintf("The client runs, but %v. Its output is in %s.", h.err, s.child.log)}
	case !h.ready:
		return trouble{v1alpha1.ReasonClientNotReady, fmt.Sprintf("The client runs, but says that it is not ready to pass on calls. It says why in %s.", s.child.log)}
	case s.poll.at.IsZero():
		return trouble{v1alpha1.ReasonPollStale, fmt.Sprintf("The client runs, but has not polled the control plane with success: is the tunnel's ID right, and its key valid? Its output is in %s.", s.child.log)}
	case now.Sub(s.poll.at) > limit:
		return stalePoll(limit)
	}
	return trouble{}
}

// judge sets the status.
func (r *Reconciler) judge(t *v1alpha1.Tunnel, s *supervised) {
	t.Status.ObservedGeneration = t.Generation
	t.Status.Restarts = s.restarts
	_, t.Status.LogFile = r.files(t.Name)
	if s.settled {
		t.Status.Process = nil
	}
	if c := s.child; c != nil {
		t.Status.Process = &v1alpha1.Process{PID: int32(c.family.PGID()), StartTime: c.family.StartTime(), Command: clip(c.command, 64)}
	}
	status, why := r.verdict(s)
	if told := t.Status.LastPollTime; !s.poll.at.IsZero() && (told == nil || s.poll.at.Sub(told.Time) >= pollEvery ||
		!apimeta.IsStatusConditionPresentAndEqual(t.Status.Conditions, v1alpha1.ConditionReady, status)) {
		at := metav1.NewMicroTime(s.poll.at)
		t.Status.LastPollTime = &at
	}
	setReady(t, status, why, r.Now())
	t.Status.Phase = phase(status, why.reason)
}

// verdict says whether the tunnel can be used, and why.
func (r *Reconciler) verdict(s *supervised) (metav1.ConditionStatus, trouble) {
	switch {
	case s.stuck != nil:
		return metav1.ConditionFalse, trouble{v1alpha1.ReasonClientUnstoppable, sentence(s.stuck.Error())}
	case !s.object.DeletionTimestamp.IsZero():
		return metav1.ConditionFalse, trouble{v1alpha1.ReasonClosing, "The tunnel was deleted; its client is being stopped."}
	case s.object.Spec.Suspended && s.settled && s.child == nil:
		return metav1.ConditionFalse, trouble{v1alpha1.ReasonSuspended, "spec.suspended is set; no client runs."}
	case s.object.Spec.Suspended:
		return metav1.ConditionFalse, trouble{v1alpha1.ReasonSuspended, "spec.suspended is set; the client is being stopped."}
	case r.drains():
		return metav1.ConditionFalse, trouble{v1alpha1.ReasonBridgeStopped, "Rig Bridge has ended; the tunnel comes back with it."}
	case s.working && !s.stopping:
		return r.verdictWorking(s)
	case s.trouble != trouble{} && s.cutOff != nil:
		return metav1.ConditionFalse, trouble{v1alpha1.ReasonControlPlaneUnreachable, sentence(s.cutOff.Error()) + " The client is started again when one can."}
	case s.trouble != trouble{}:
		return metav1.ConditionFalse, s.trouble
	}
	if s.child == nil {
		return metav1.ConditionUnknown, trouble{v1alpha1.ReasonClientStarting, "The client is about to be started."}
	}
	return metav1.ConditionUnknown, trouble{v1alpha1.ReasonClientStarting, "The client is started and has not polled the control plane with success yet."}
}

// verdictWorking is about a client that worked at the last look, which may be a while ago.
func (r *Reconciler) verdictWorking(s *supervised) (metav1.ConditionStatus, trouble) {
	if limit := pollLimit(s.object.Spec); r.Now().Sub(s.poll.at) > limit {
		return metav1.ConditionFalse, stalePoll(limit)
	}
	message := "The client polls the control plane and can use this daemon."
	if !r.Routes.Watched() {
		message += " Changes of the default route are not available here: the watchdog works without them."
	}
	return metav1.ConditionTrue, trouble{v1alpha1.ReasonConnected, message}
}

func stalePoll(limit time.Duration) trouble {
	return trouble{v1alpha1.ReasonPollStale, fmt.Sprintf("The client runs, but its last successful poll is more than %s ago.", limit)}
}

// starting says of a tunnel that its state is not known.
func starting(t *v1alpha1.Tunnel, message string, now time.Time) {
	setReady(t, metav1.ConditionUnknown, trouble{v1alpha1.ReasonClientStarting, message}, now)
	t.Status.Phase = phase(metav1.ConditionUnknown, v1alpha1.ReasonClientStarting)
}

func setReady(t *v1alpha1.Tunnel, status metav1.ConditionStatus, why trouble, now time.Time) {
	apimeta.SetStatusCondition(&t.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Reason: why.reason,
		Message: clip(why.message, 2000), ObservedGeneration: t.Generation, LastTransitionTime: metav1.NewTime(now)})
}

// phase sums the condition up.
func phase(status metav1.ConditionStatus, reason string) v1alpha1.TunnelPhase {
	switch {
	case status == metav1.ConditionTrue:
		return v1alpha1.TunnelReady
	case status == metav1.ConditionUnknown:
		return v1alpha1.TunnelStarting
	case reason == v1alpha1.ReasonSuspended:
		return v1alpha1.TunnelSuspended
	}
	return v1alpha1.TunnelDegraded
}

// sentence makes an error one.
func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// clip keeps a text within the bound of its field, in characters.
func clip(text string, limit int) string {
	if r := []rune(text); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return text
}
