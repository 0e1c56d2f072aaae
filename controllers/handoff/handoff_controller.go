package handoff

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/rigbridge/rigbridge/api/failpoint"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// Notification is what the person is shown.
type Notification struct {
	// Title and Body are plain text.
	Title, Body string
	// Link is the address that shows more. It holds no secret.
	Link string
	// Open makes the address to open at once when the person asks to see more; it may log the browser in.
	Open func() string
}

// Notifier shows a notification on the person's desktop. Its error says in plain words why it could not.
type Notifier interface {
	Notify(ctx context.Context, n Notification) error
}

// again is when a handoff that could not be written or has to wait for its turn is looked at again.
const again = 100 * time.Millisecond

// Reconciler notes what became of handoffs. The cache shows it those that are active. All fields but the unexported
// are required.
type Reconciler struct {
	// Client reads from the cache and writes to the API.
	Client client.Client
	// Durable waits until everything up to a resourceVersion is on disk.
	Durable func(ctx context.Context, resourceVersion string) error
	// Notifier tells the person.
	Notifier Notifier
	// Link is the dashboard's address of a thread, and Open makes one that logs the browser in, to be opened at once.
	Link, Open func(thread string) string
	// Now is the clock of the times in status.
	Now func() time.Time
	// Events tells people what happened.
	Events record.EventRecorder

	events chan event.GenericEvent

	mu     sync.Mutex
	busy   bool                // one is being sent
	taken  map[types.UID]bool  // were sent, or are being sent, by this life of the daemon
	result map[types.UID]error // what became of them, until it is stored
}

// SetupWithManager has the manager run the reconciler.
func (r *Reconciler) SetupWithManager(m ctrl.Manager) error {
	r.events = make(chan event.GenericEvent, 16)
	r.taken, r.result = map[types.UID]bool{}, map[types.UID]error{}
	return ctrl.NewControllerManagedBy(m).
		Named("handoff").
		For(&v1alpha1.Handoff{}).
		WatchesRawSource(source.Channel(r.events, &handler.EnqueueRequestForObject{})).
		Complete(r)
}

// Reconcile looks at one handoff.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (res ctrl.Result, err error) {
	cached := &v1alpha1.Handoff{}
	if err := r.Client.Get(ctx, req.NamespacedName, cached); err != nil {
		return res, client.IgnoreNotFound(err) // read, or gone
	}
	o, err := r.observe(ctx, cached)
	if err != nil {
		return res, err
	}
	h := cached.DeepCopy()
	judge(h, o, metav1.NewMicroTime(r.Now()))
	begin := o.sending == notSent && h.Status.Delivery.Phase == v1alpha1.DeliveryPending && cached.Status.Delivery.Phase == v1alpha1.DeliveryPending
	if begin {
		if !r.take(h.UID) {
			return ctrl.Result{RequeueAfter: again}, nil
		}
		h.Status.Delivery.Phase = v1alpha1.DeliverySending
	}
	if !apiequality.Semantic.DeepEqual(cached.Status, h.Status) {
		if err = r.Client.Status().Update(ctx, h); err == nil {
			r.tell(cached.Status, h)
		}
	}
	switch {
	case err != nil && begin:
		r.giveBack(h.UID)
	case begin:
		go r.send(h)
	}
	if apierrors.IsConflict(err) { // the cache is behind
		return ctrl.Result{RequeueAfter: again}, nil
	}
	return res, client.IgnoreNotFound(err)
}

// tell records what changed in a handoff's status.
func (r *Reconciler) tell(before v1alpha1.HandoffStatus, h *v1alpha1.Handoff) {
	if before.ReadTime == nil && h.Status.ReadTime != nil {
		r.Events.Event(h, corev1.EventTypeNormal, v1alpha1.EventAcknowledged, "The handoff was marked as read.")
	}
	d := h.Status.Delivery
	if d.Phase == before.Delivery.Phase {
		return
	}
	switch d.Phase {
	case v1alpha1.DeliverySent:
		r.Events.Event(h, corev1.EventTypeNormal, v1alpha1.EventNotificationSent, "The desktop took the notification.")
	case v1alpha1.DeliveryFailed:
		r.Events.Event(h, corev1.EventTypeWarning, v1alpha1.EventNotificationFailed, "The notification was not shown: "+brief(d.Error))
	case v1alpha1.DeliveryUnknown:
		r.Events.Event(h, corev1.EventTypeWarning, v1alpha1.EventNotificationUnknown, d.Error)
	}
}

// brief keeps an error within what an event may hold beside our own words.
func brief(text string) string {
	const limit = 900 // bytes
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

// sending is how far this life of the daemon has come with a notification.
type sending int

const (
	notSent  sending = iota // not begun by this life
	underWay                // being sent
	sent                    // over; err says how
)

// observed is what judge looks at.
type observed struct {
	desktop bool // the project wants notifications; looked at for a new handoff only
	sending sending
	err     error
}

func (r *Reconciler) observe(ctx context.Context, h *v1alpha1.Handoff) (o observed, err error) {
	r.mu.Lock()
	if r.taken[h.UID] {
		o.sending = underWay
		if result, over := r.result[h.UID]; over {
			o.sending, o.err = sent, result
		}
	}
	r.mu.Unlock()
	if h.Status.Delivery.Phase != "" {
		return o, nil
	}
	_, project, err := r.around(ctx, h)
	if err != nil {
		return o, err
	}
	o.desktop = project.Spec.Notifications.Desktop
	return o, nil
}

// around returns a handoff's thread and project, empty if they are gone.
func (r *Reconciler) around(ctx context.Context, h *v1alpha1.Handoff) (*v1alpha1.Thread, *v1alpha1.Project, error) {
	thread, project := &v1alpha1.Thread{}, &v1alpha1.Project{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: h.Namespace, Name: h.Spec.ThreadRef.Name}, thread)
	if err == nil {
		err = r.Client.Get(ctx, types.NamespacedName{Namespace: h.Namespace, Name: thread.Spec.ProjectRef.Name}, project)
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, nil, fmt.Errorf("read the project of handoff %s: %w", h.Name, err)
	}
	return thread, project, nil
}

// judge sets the handoff's status.
func judge(h *v1alpha1.Handoff, o observed, now metav1.MicroTime) {
	h.Status.ObservedGeneration = h.Generation
	if h.Spec.Acknowledged && h.Status.ReadTime == nil {
		h.Status.ReadTime = &now
	}
	h.Status.Delivery = delivery(h.Status.Delivery, o)
}

// delivery is pure.
func delivery(d v1alpha1.HandoffDelivery, o observed) v1alpha1.HandoffDelivery {
	switch {
	case d.Phase == "" && o.desktop:
		return v1alpha1.HandoffDelivery{Phase: v1alpha1.DeliveryPending}
	case d.Phase == "":
		return v1alpha1.HandoffDelivery{Phase: v1alpha1.DeliveryDisabled}
	case d.Phase != v1alpha1.DeliverySending:
		return d
	case o.sending == notSent:
		return v1alpha1.HandoffDelivery{Phase: v1alpha1.DeliveryUnknown, Error: "Rig Bridge was interrupted while it sent this; it is not sent again."}
	case o.sending == sent && o.err != nil:
		return v1alpha1.HandoffDelivery{Phase: v1alpha1.DeliveryFailed, Error: clip(o.err.Error())}
	case o.sending == sent:
		return v1alpha1.HandoffDelivery{Phase: v1alpha1.DeliverySent}
	}
	return d
}

// clip keeps an error within the bound of its field.
func clip(text string) string {
	const limit = 1000
	if r := []rune(text); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return text
}

// take reserves the one place for sending. A handoff takes it once in a life.
func (r *Reconciler) take(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy || r.taken[uid] {
		return false
	}
	r.busy, r.taken[uid] = true, true
	return true
}

func (r *Reconciler) giveBack(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy = false
	delete(r.taken, uid)
}

// send shows the notification once the record that it is being sent is on the disk.
func (r *Reconciler) send(h *v1alpha1.Handoff) {
	ctx := context.Background()
	failpoint.Hit(failpoint.Sending)
	err := r.Durable(ctx, h.ResourceVersion)
	if err != nil {
		err = fmt.Errorf("the state directory cannot be written, so nothing was sent")
	} else {
		failpoint.Hit(failpoint.SendingDurable)
		err = r.notify(ctx, h)
		failpoint.Hit(failpoint.Sent)
	}
	r.mu.Lock()
	r.busy, r.result[h.UID] = false, err
	r.mu.Unlock()
	r.events <- event.GenericEvent{Object: h}
}

func (r *Reconciler) notify(ctx context.Context, h *v1alpha1.Handoff) error {
	thread, project, err := r.around(ctx, h)
	if err != nil {
		return err
	}
	return r.Notifier.Notify(ctx, Notification{
		Title: project.Spec.DisplayName + " · Your turn", Body: thread.Spec.Title + ": " + h.Spec.Summary, Link: r.Link(thread.Name),
		Open: func() string { return r.Open(thread.Name) },
	})
}
