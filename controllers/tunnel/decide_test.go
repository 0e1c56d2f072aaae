package tunnel

import (
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

func TestDecide(t *testing.T) {
	now := time.Unix(1000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	base := observed{now: now, interval: 10 * time.Second, settled: true}
	with := func(change func(*observed)) observed {
		o := base
		change(&o)
		return o
	}
	running := func(change func(*observed)) observed {
		return with(func(o *observed) {
			o.running, o.worked, o.looked = true, true, ago(3*time.Second)
			change(o)
		})
	}
	for name, c := range map[string]struct {
		o    observed
		want decision
	}{
		"what earlier lives left comes first": {with(func(o *observed) { o.settled = false }), decision{do: settle}},
		"also for what is not wanted":         {with(func(o *observed) { o.settled, o.unwanted = false, true }), decision{do: settle}},
		"after a pause if it failed": {with(func(o *observed) { o.settled, o.notBefore = false, now.Add(4*time.Second) }),
			decision{do: wait, after: 4 * time.Second}},
		"one thing at a time":            {with(func(o *observed) { o.settled, o.busy = false, true }), decision{do: rest}},
		"a first start asks nobody":      {base, decision{do: begin}},
		"what is not wanted rests":       {with(func(o *observed) { o.unwanted = true }), decision{do: rest}},
		"and so does it during a pause":  {with(func(o *observed) { o.unwanted, o.notBefore = true, now.Add(time.Hour) }), decision{do: rest}},
		"what is not wanted is stopped":  {running(func(o *observed) { o.unwanted = true }), decision{do: end}},
		"another spec":                   {running(func(o *observed) { o.outdated = true }), decision{do: end}},
		"never a second":                 {running(func(o *observed) { o.failures, o.reachable = 3, true }), decision{do: wait, after: 7 * time.Second}},
		"the next look":                  {running(func(o *observed) { o.looked = ago(10 * time.Second) }), decision{do: look}},
		"the first look":                 {running(func(o *observed) { o.looked = time.Time{} }), decision{do: look}},
		"often at first":                 {running(func(o *observed) { o.worked = false }), decision{do: look}},
		"a change is looked at at once":  {running(func(o *observed) { o.prompt = true }), decision{do: look}},
		"a fault":                        {running(func(o *observed) { o.fault, o.reachable = "PollStale", true }), decision{do: end, cause: "PollStale"}},
		"a fault, cut off":               {running(func(o *observed) { o.fault = "PollStale" }), decision{do: wait, after: 7 * time.Second}},
		"a fault without a watchdog":     {running(func(o *observed) { o.fault, o.reachable, o.unattended = "PollStale", true, true }), decision{do: wait, after: 7 * time.Second}},
		"a restart pauses":               {with(func(o *observed) { o.failures, o.notBefore = 1, now.Add(2*time.Second) }), decision{do: wait, after: 2 * time.Second}},
		"a restart asks first":           {with(func(o *observed) { o.failures = 1 }), decision{do: look}},
		"a restart":                      {with(func(o *observed) { o.failures, o.looked, o.reachable = 1, ago(0), true }), decision{do: begin}},
		"a restart, cut off":             {with(func(o *observed) { o.failures, o.looked = 1, ago(time.Second) }), decision{do: wait, after: 9 * time.Second}},
		"cut off, asks again":            {with(func(o *observed) { o.failures, o.looked = 1, ago(10*time.Second) }), decision{do: look}},
		"a restart without a watchdog":   {with(func(o *observed) { o.failures, o.unattended = 1, true }), decision{do: begin}},
		"what cannot be stopped is left": {running(func(o *observed) { o.unwanted, o.notBefore = true, now.Add(time.Second) }), decision{do: wait, after: time.Second}},
	} {
		if got := decide(c.o); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestPauses(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: 0, 1: 2 * time.Second, 2: 4 * time.Second, 5: 32 * time.Second, 6: time.Minute, 7: time.Minute, 1 << 30: time.Minute} {
		if got := pauseAfter(failures); got != want {
			t.Errorf("after %d failures %s, want %s", failures, got, want)
		}
	}
	for _, c := range []struct {
		before   int
		life     time.Duration
		byItself bool
		want     int
	}{{0, time.Second, true, 1}, {4, time.Second, true, 5}, {4, time.Second, false, 5}, {4, time.Hour, true, 1}, {4, time.Hour, false, 0}} {
		if got := inARow(c.before, c.life, c.byItself); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// A client whose clock runs ahead of ours must not seem fresh for as long as it does.
func TestPollClock(t *testing.T) {
	now := time.Unix(1000, 0)
	var p pollClock
	p.see(now.Add(-time.Second), now)
	if !p.at.Equal(now.Add(-time.Second)) {
		t.Errorf("a poll a second ago is dated %s", p.at)
	}
	p.see(now.Add(time.Hour), now)
	if !p.at.Equal(now) {
		t.Errorf("a poll in an hour is dated %s", p.at)
	}
	p.see(now.Add(time.Hour), now.Add(time.Minute))
	if !p.at.Equal(now) {
		t.Errorf("the same, seen again, is dated %s", p.at)
	}
}

func TestControlPlane(t *testing.T) {
	for _, c := range []struct{ spec, environment, proxy, want string }{
		{"", "", "", "api.openai.com:443"},
		{"", "https://mtls.api.openai.com", "", "mtls.api.openai.com:443"},
		{"http://127.0.0.1:81/path", "https://other", "", "127.0.0.1:81"},
		{"http://[::1]", "", "", "[::1]:80"},
		{"", "", "http://proxy.example:3128", "proxy.example:3128"},
		{"", "", "http://sam:secret@proxy.example", "proxy.example:80"},
		{"", "", "socks5://proxy.example", "proxy.example:1080"},
	} {
		t.Setenv(ControlPlaneVariable, c.environment)
		t.Setenv(proxyVariable, c.proxy)
		tu := &v1alpha1.Tunnel{Spec: v1alpha1.TunnelSpec{ControlPlaneURL: c.spec}}
		if got, err := controlPlane(tu); err != nil || got != c.want {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
	}
}
