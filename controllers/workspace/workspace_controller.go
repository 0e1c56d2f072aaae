package workspace

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/lastuse"
)

// Max is the number of workspaces that may be open at once.
const Max = 64

// indexOperations is the cache index of active operations by workspace; the Operation reconciler makes it.
const indexOperations = "spec.workspaceRef.name"

// Reconciler opens and closes workspaces.
type Reconciler struct {
	// Client reads from the cache and writes to the API; Live reads from the API.
	Client client.Client
	Live   client.Reader
	// Closing is called when a workspace is about to go and its calls are over. An error is tried again.
	Closing func(ctx context.Context, ws *v1alpha1.Workspace) error
	// Events tells people what happened.
	Events record.EventRecorder
	// Account and Host are shown in status.
	Account, Host string
	// Now is the clock.
	Now func() time.Time

	used lastuse.Times
}

// SetupWithManager has the manager run the reconciler.
func (r *Reconciler) SetupWithManager(m ctrl.Manager) error {
	ofOperation := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		op := o.(*v1alpha1.Operation)
		key, ws := types.NamespacedName{Namespace: op.Namespace, Name: op.Spec.WorkspaceRef.Name}, &v1alpha1.Workspace{}
		if err := r.Client.Get(ctx, key, ws); err == nil && ws.DeletionTimestamp.IsZero() {
			return nil
		}
		return []reconcile.Request{{NamespacedName: key}}
	})
	return ctrl.NewControllerManagedBy(m).
		Named("workspace").
		For(&v1alpha1.Workspace{}).
		// Only an operation's end matters, and only to a workspace that waits for it.
		Watches(&v1alpha1.Operation{}, ofOperation, builder.WithPredicates(onlyEnds())).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(r)
}

// Used notes that a workspace was used. It is written to status lazily.
func (r *Reconciler) Used(name string) { r.used.Note(name, r.Now()) }

// Reconcile looks at one workspace.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (res ctrl.Result, err error) {
	ws := &v1alpha1.Workspace{}
	if err := r.Client.Get(ctx, req.NamespacedName, ws); err != nil {
		if apierrors.IsNotFound(err) {
			r.used.Forget(req.Name)
		}
		return res, client.IgnoreNotFound(err)
	}
	ws = ws.DeepCopy()
	if !ws.DeletionTimestamp.IsZero() {
		return r.close(ctx, ws)
	}
	room := true
	if !ws.Ready() {
		if room, err = r.makeRoom(ctx, ws); err != nil {
			return res, err
		}
	}
	before := ws.Status.DeepCopy()
	r.judge(ws, room)
	if equal(before, &ws.Status) {
		return ctrl.Result{RequeueAfter: checkEvery}, nil
	}
	if err := r.Client.Status().Update(ctx, ws); err != nil {
		return res, client.IgnoreNotFound(err)
	}
	r.tell(before, ws)
	return ctrl.Result{RequeueAfter: checkEvery}, nil
}

// tell records an event when the workspace has begun or ceased to admit calls.
func (r *Reconciler) tell(before *v1alpha1.WorkspaceStatus, ws *v1alpha1.Workspace) {
	was, is := apimeta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady), apimeta.FindStatusCondition(ws.Status.Conditions, v1alpha1.ConditionReady)
	if was != nil && was.Reason == is.Reason {
		return
	}
	kind := corev1.EventTypeNormal
	if is.Status != metav1.ConditionTrue {
		kind = corev1.EventTypeWarning
	}
	r.Events.Event(ws, kind, is.Reason, is.Message)
}

// checkEvery is how often a workspace's directory is looked at and its last use is written.
const checkEvery = time.Minute

// judge sets the workspace's condition from what is on the disk.
func (r *Reconciler) judge(ws *v1alpha1.Workspace, room bool) {
	ws.Status.ObservedGeneration = ws.Generation
	ws.Status.Account, ws.Status.Host = r.Account, r.Host
	if at := r.lastUse(ws); ws.Status.LastUsedTime == nil || at.Sub(ws.Status.LastUsedTime.Time) >= checkEvery {
		t := metav1.NewMicroTime(at)
		ws.Status.LastUsedTime = &t
	}
	if !room {
		condition(ws, metav1.ConditionFalse, v1alpha1.ReasonWorkspaceLimit,
			fmt.Sprintf("%d workspaces are open and none of them is idle. Close one.", Max))
		ws.Status.Phase = v1alpha1.WorkspaceNotReady
		return
	}
	st, err := os.Stat(ws.Spec.Cwd)
	if err != nil || !st.IsDir() {
		condition(ws, metav1.ConditionFalse, v1alpha1.ReasonDirectoryNotFound,
			"The directory is not there. Make it again, or close the workspace.")
		ws.Status.Phase = v1alpha1.WorkspaceNotReady
		return
	}
	if !ws.Ready() { // whoever waits for it has yet to use it
		r.Used(ws.Name)
	}
	condition(ws, metav1.ConditionTrue, v1alpha1.ReasonOpened, "Calls are admitted.")
	ws.Status.Phase = v1alpha1.WorkspaceReady
}

func condition(ws *v1alpha1.Workspace, status metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(&ws.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message, ObservedGeneration: ws.Generation,
	})
}

func equal(a, b *v1alpha1.WorkspaceStatus) bool {
	x, y := apimeta.FindStatusCondition(a.Conditions, v1alpha1.ConditionReady), apimeta.FindStatusCondition(b.Conditions, v1alpha1.ConditionReady)
	return x != nil && y != nil && *x == *y && a.Phase == b.Phase && a.LastUsedTime.Equal(b.LastUsedTime)
}

// close stops the workspace's operations and lets it go when they are over.
func (r *Reconciler) close(ctx context.Context, ws *v1alpha1.Workspace) (res ctrl.Result, err error) {
	active, err := r.active(ctx, ws)
	if err != nil {
		return res, err
	}
	for i := range active {
		if err := r.cancel(ctx, &active[i]); err != nil {
			return res, err
		}
	}
	if len(active) > 0 {
		return ctrl.Result{RequeueAfter: time.Second}, nil // an operation's end wakes it earlier
	}
	if err := r.Closing(ctx, ws); err != nil {
		return res, fmt.Errorf("close workspace %s: %w", ws.Name, err)
	}
	if controllerutil.RemoveFinalizer(ws, v1alpha1.Finalizer) {
		if err := r.Client.Update(ctx, ws); err != nil {
			return res, client.IgnoreNotFound(err)
		}
		r.Events.Event(ws, corev1.EventTypeNormal, v1alpha1.EventClosed, "The workspace was closed; its calls are over.")
	}
	return res, nil
}

// active returns the workspace's operations that are not over, as the cache shows them.
func (r *Reconciler) active(ctx context.Context, ws *v1alpha1.Workspace) ([]v1alpha1.Operation, error) {
	ops := &v1alpha1.OperationList{}
	err := r.Client.List(ctx, ops, client.InNamespace(ws.Namespace), client.MatchingFields{indexOperations: ws.Name})
	if err != nil {
		return nil, fmt.Errorf("list the operations of workspace %s: %w", ws.Name, err)
	}
	return ops.Items, nil
}

func (r *Reconciler) cancel(ctx context.Context, op *v1alpha1.Operation) error {
	if op.Spec.Cancel {
		return nil
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancel":true,"cancelledBy":"workspace_close"}}`))
	return client.IgnoreNotFound(r.Client.Patch(ctx, op.DeepCopy(), patch))
}

// makeRoom closes the least recently used idle workspaces until there is room for a new one, and says whether
// there is. Of those that are being opened at the same time, the ones that come later do not count and none is closed.
func (r *Reconciler) makeRoom(ctx context.Context, added *v1alpha1.Workspace) (room bool, _ error) {
	all := &v1alpha1.WorkspaceList{}
	if err := r.Client.List(ctx, all, client.InNamespace(added.Namespace)); err != nil {
		return false, fmt.Errorf("list workspaces: %w", err)
	}
	open, tooMany := all.Items[:0:0], 1-Max
	for _, ws := range all.Items {
		switch {
		case !ws.DeletionTimestamp.IsZero() || ws.Name == added.Name:
		case len(ws.Status.Conditions) > 0:
			open = append(open, ws)
			tooMany++
		case earlier(&ws, added):
			tooMany++
		}
	}
	sort.Slice(open, func(i, j int) bool { return r.lastUse(&open[i]).Before(r.lastUse(&open[j])) })
	for i := 0; i < len(open) && tooMany > 0; i++ {
		active, err := r.active(ctx, &open[i])
		if err != nil {
			return false, err
		}
		if len(active) > 0 {
			continue
		}
		if err := r.Client.Delete(ctx, &open[i]); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("reclaim workspace %s: %w", open[i].Name, err)
		}
		r.Events.Eventf(&open[i], corev1.EventTypeNormal, v1alpha1.EventReclaimed, "Closed as the one that was idle for longest: %d workspaces are open at most.", Max)
		tooMany--
	}
	return tooMany <= 0, nil
}

// earlier is an order of workspaces that are being opened.
func earlier(a, b *v1alpha1.Workspace) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name)) < 0
}

func (r *Reconciler) lastUse(ws *v1alpha1.Workspace) time.Time {
	return r.used.Of(ws, ws.Status.LastUsedTime)
}

// onlyEnds passes an operation's end on. The cache then drops it, unless its command left processes running.
func onlyEnds() predicate.Predicate {
	over := func(o client.Object) bool { return o.(*v1alpha1.Operation).Over() }
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return !over(e.ObjectOld) && over(e.ObjectNew) },
	}
}
