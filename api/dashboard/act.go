package dashboard

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// cancelledBy is what a receipt says when the page asked a call to stop.
const cancelledBy = "person"

func (d *Dashboard) markRead(w http.ResponseWriter, r *http.Request) {
	var a struct {
		ID string `json:"handoff_id"`
	}
	if !readBody(w, r, &a) {
		return
	}
	h := &v1alpha1.Handoff{}
	err := d.change(r.Context(), a.ID, h, func() bool {
		already := h.Spec.Acknowledged
		h.Spec.Acknowledged = true
		return !already
	})
	d.done(w, err, "There is no handoff with this handoff_id.")
}

func (d *Dashboard) setPreferences(w http.ResponseWriter, r *http.Request) {
	var a struct {
		ID      string `json:"project_id"`
		Desktop *bool  `json:"desktop_notifications"`
	}
	if !readBody(w, r, &a) {
		return
	}
	if a.Desktop == nil {
		refuse(w, http.StatusBadRequest, "desktop_notifications must be true or false.")
		return
	}
	p := &v1alpha1.Project{}
	err := d.change(r.Context(), a.ID, p, func() bool {
		before := p.Spec.Notifications.Desktop
		p.Spec.Notifications.Desktop = *a.Desktop
		return before != *a.Desktop
	})
	d.done(w, err, "There is no project with this project_id.")
}

// abort asks a call to stop, and answers when that is on record; the call ends a moment later. One that is over
// cannot be stopped.
func (d *Dashboard) abort(w http.ResponseWriter, r *http.Request) {
	var a struct {
		Workspace string `json:"workspace_id"`
		Command   string `json:"command_id"`
	}
	if !readUpTo(maxAbortBody, w, r, &a) {
		return
	}
	op := &v1alpha1.Operation{}
	stoppable := false
	err := d.change(r.Context(), a.Command, op, func() bool {
		stoppable = !op.Over() && op.Spec.WorkspaceRef.Name == a.Workspace
		if !stoppable || op.Spec.Cancel {
			return false
		}
		op.Spec.Cancel, op.Spec.CancelledBy = true, cancelledBy
		return true
	})
	switch {
	case err != nil && !unknown(err):
		d.done(w, err, "")
	case err != nil || !stoppable:
		reply(w, http.StatusNotFound, map[string]bool{"aborted": false})
	default:
		reply(w, http.StatusOK, map[string]bool{"aborted": true})
	}
}

// change reads an object, has it changed and writes it durably, again when somebody else was faster.
func (d *Dashboard) change(ctx context.Context, name string, o client.Object, change func() (changed bool)) error {
	if name == "" {
		return errNoName
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := d.Client.Get(ctx, client.ObjectKey{Namespace: v1alpha1.Namespace, Name: name}, o); err != nil {
			return err
		}
		if change() {
			if err := d.Client.Update(ctx, o); err != nil {
				return err
			}
		}
		return d.Durable(ctx, o.GetResourceVersion())
	})
}

var errNoName = errors.New("no name")

// unknown tells whether an object is not there, or was not named as one can be.
func unknown(err error) bool {
	return errors.Is(err, errNoName) || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err)
}

func (d *Dashboard) done(w http.ResponseWriter, err error, missing string) {
	switch {
	case err == nil:
		reply(w, http.StatusOK, map[string]bool{"ok": true})
	case unknown(err):
		refuse(w, http.StatusBadRequest, missing)
	default:
		d.Log.Error(err, "A change from the dashboard failed")
		refuse(w, http.StatusInternalServerError, "The change could not be written; try again.")
	}
}
