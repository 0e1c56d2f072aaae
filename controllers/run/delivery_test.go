package run_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// alert turns desktop notifications of a project on or off.
func (w *world) alert(project string, on bool) {
	w.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"notifications":{"desktop":%v}}}`, on)
	w.must(w.client.Patch(context.Background(), &v1alpha1.Project{ObjectMeta: named(project)}, client.RawPatch(types.MergePatchType, []byte(patch))))
	w.eventually("the cache shows the setting", func() bool {
		p := &v1alpha1.Project{}
		w.must(w.cached.Get(context.Background(), client.ObjectKey{Namespace: v1alpha1.Namespace, Name: project}, p))
		return p.Spec.Notifications.Desktop == on
	})
}

func (w *world) delivery(handoff string) v1alpha1.HandoffDelivery {
	w.t.Helper()
	h := &v1alpha1.Handoff{}
	w.get(handoff, h)
	return h.Status.Delivery
}

func (w *world) delivered(handoff string, want v1alpha1.DeliveryPhase) {
	w.t.Helper()
	w.eventually("delivery is "+string(want), func() bool { return w.delivery(handoff).Phase == want })
}

func TestPersonIsTold(t *testing.T) {
	w := newWorld(t)
	w.open("p", "t")
	w.open("quiet", "q")
	w.alert("p", true)
	h, err := w.handOff("t", "", "op")
	w.must(err)
	q, err := w.handOff("q", "", "op-q")
	w.must(err)
	w.delivered(h.Name, v1alpha1.DeliverySent)
	w.delivered(q.Name, v1alpha1.DeliveryDisabled)
	seen := w.desktop.seen()
	if len(seen) != 1 || seen[0].Title != "p · Your turn" || seen[0].Body != "About t: Look at op" || seen[0].Link != "http://127.0.0.1/#thread=t" {
		t.Errorf("the person was shown %+v", seen)
	}
	w.acknowledge(h.Name)
	w.restart()
	time.Sleep(100 * time.Millisecond) // would it be sent again, it would be soon
	if len(w.desktop.seen()) != 1 || w.delivery(h.Name).Phase != v1alpha1.DeliverySent {
		t.Errorf("after a restart: %+v, shown %d times", w.delivery(h.Name), len(w.desktop.seen()))
	}
}

func TestDesktopFails(t *testing.T) {
	w := newWorld(t)
	w.open("p", "t")
	w.alert("p", true)
	w.desktop.err = errors.New("there is no desktop session of this account")
	h, err := w.handOff("t", "", "op")
	w.must(err)
	w.delivered(h.Name, v1alpha1.DeliveryFailed)
	if d := w.delivery(h.Name); d.Error != w.desktop.err.Error() {
		t.Errorf("it failed because of %q", d.Error)
	}
}

// One at a time; and what the daemon died over is never sent again.
func TestDaemonDiesWhileSending(t *testing.T) {
	w := newWorld(t)
	w.open("p", "a")
	w.open("p", "b")
	w.alert("p", true)
	gate := make(chan struct{})
	w.desktop.gate = gate
	first, err := w.handOff("a", "", "op-a")
	w.must(err)
	w.delivered(first.Name, v1alpha1.DeliverySending)
	second, err := w.handOff("b", "", "op-b")
	w.must(err)
	w.delivered(second.Name, v1alpha1.DeliveryPending)
	w.eventually("the first is being shown", func() bool { return len(w.desktop.seen()) == 1 })
	w.acknowledge(first.Name) // reading does not wait for the desktop
	w.eventually("it is read", func() bool {
		h := &v1alpha1.Handoff{}
		w.get(first.Name, h)
		return h.Status.ReadTime != nil && h.Status.Delivery.Phase == v1alpha1.DeliverySending
	})
	w.stop()
	w.desktop.mu.Lock()
	w.desktop.gate = nil
	w.desktop.mu.Unlock()
	w.live()
	w.delivered(first.Name, v1alpha1.DeliveryUnknown)
	w.delivered(second.Name, v1alpha1.DeliverySent)
	if seen := w.desktop.seen(); len(seen) != 2 || seen[1].Body != "About b: Look at op-b" {
		t.Errorf("the person was shown %+v", seen)
	}
	close(gate)
}

// Many at once are all shown, each once.
func TestManyNotifications(t *testing.T) {
	w := newWorld(t)
	const n = 8
	var names []string
	for i := range n {
		w.open("p", fmt.Sprint("t", i))
	}
	w.alert("p", true)
	for i := range n {
		h, err := w.handOff(fmt.Sprint("t", i), "", fmt.Sprint("op", i))
		w.must(err)
		names = append(names, h.Name)
	}
	for _, name := range names {
		w.delivered(name, v1alpha1.DeliverySent)
	}
	bodies := map[string]int{}
	for _, s := range w.desktop.seen() {
		bodies[s.Body]++
	}
	if len(bodies) != n || len(w.desktop.seen()) != n {
		t.Errorf("shown: %v", bodies)
	}
}
