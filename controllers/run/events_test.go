package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// events returns what is recorded about an object, as "Type Reason".
func (w *world) events(kind, name string) (all []string) {
	w.t.Helper()
	for _, e := range w.eventsOf(client.MatchingFields{"involvedObject.kind": kind, "involvedObject.name": name}) {
		all = append(all, e.Type+" "+e.Reason)
	}
	slices.Sort(all)
	return all
}

func (w *world) eventsOf(fields client.MatchingFields) []corev1.Event {
	w.t.Helper()
	list := &corev1.EventList{}
	w.must(w.client.List(context.Background(), list, client.InNamespace(v1alpha1.Namespace), fields))
	return list.Items
}

func (w *world) told(kind, name string, want ...string) {
	w.t.Helper()
	w.eventually(kind+" "+name+" has "+strings.Join(want, ", "), func() bool { return slices.Equal(w.events(kind, name), want) })
}

// What happens to runs and handoffs is told, and the assistant's words are not in it.
func TestEvents(t *testing.T) {
	w := newWorld(t)
	w.open("p", "t")
	w.alert("p", true)
	w.desktop.err = errors.New("there is no desktop session of this account")
	first := w.begin("t")
	w.told("Run", first, "Normal Started")
	h, err := w.handOff("t", "", "secret words")
	w.must(err)
	w.told("Run", first, "Normal HandedOff", "Normal Started")
	w.told("Handoff", h.Name, "Warning NotificationFailed")
	w.acknowledge(h.Name)
	w.told("Handoff", h.Name, "Normal Acknowledged", "Warning NotificationFailed")
	second := w.begin("t")
	w.close("t")
	w.told("Run", second, "Normal Started", "Warning Interrupted")
	for _, e := range w.eventsOf(nil) {
		if strings.Contains(e.Message, "secret") || strings.Contains(e.Message, "About") {
			t.Errorf("event %s tells %q", e.Reason, e.Message)
		}
	}
}

// An event leaves an hour after it was last seen; one that was seen again stays.
func TestEventsGrowOld(t *testing.T) {
	w := newWorld(t)
	w.open("p", "t")
	w.open("p", "u")
	old := w.begin("t")
	w.told("Run", old, "Normal Started")
	w.pass(59 * time.Minute)
	w.begin("u")
	w.pass(2 * time.Minute)
	w.wake("Run", old)
	w.told("Run", old)
}

// wake has the events about an object looked at, as the passing of the time would.
func (w *world) wake(kind, name string) {
	w.t.Helper()
	for _, e := range w.eventsOf(client.MatchingFields{"involvedObject.kind": kind, "involvedObject.name": name}) {
		e.Labels = map[string]string{"looked": "at"}
		w.must(w.client.Update(context.Background(), &e))
	}
}

// However many objects there are, a thousand events are kept: the newest.
func TestEventsAreBounded(t *testing.T) {
	w := newWorld(t)
	const kept, more = 1000, 50
	for i := range kept + more {
		name := fmt.Sprintf("e-%04d", i)
		at := w.now().Add(time.Duration(i-kept-more) * time.Second)
		e := &corev1.Event{ObjectMeta: named(name), InvolvedObject: corev1.ObjectReference{Kind: "Run", Namespace: v1alpha1.Namespace, Name: name},
			Reason: "Test", Type: corev1.EventTypeNormal}
		e.FirstTimestamp.Time, e.LastTimestamp.Time, e.Count = at, at, 1
		w.must(w.client.Create(context.Background(), e))
	}
	w.eventually("a thousand are left", func() bool { return len(w.eventsOf(nil)) <= kept })
	if left := w.eventsOf(nil); len(left) != kept || left[0].Name != fmt.Sprintf("e-%04d", more) {
		t.Errorf("%d are left, the oldest is %s", len(left), left[0].Name)
	}
}
