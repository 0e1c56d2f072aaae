package main

import (
	"os"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/server"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/engine/process"
	e2e "github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// Setting spec.cancel of an operation that is over stops what its command left running. Its outcome stays, and it
// does not count as a call under way.
func TestCancelStopsLeftovers(t *testing.T) {
	d, c := running(t, &settings{})
	w := open(t, c, t.TempDir())
	res := call(t, c, "bash", e2e.Args{"workspace_id": w, "request_key": "k", "command": "sleep 600 >/dev/null 2>&1 & sleep 600 >/dev/null 2>&1 &"})
	op := receipt(t, d, w, "k")
	if res.IsError || len(op.Status.Leftovers) != 2 || op.Status.Attempt.Process == nil {
		t.Fatalf("%s, receipt %+v", res.Raw, op.Status)
	}
	family := *op.Status.Attempt.Process
	if !process.Alive(int(family.PID), family.StartTime) {
		t.Fatal("nothing is left running")
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancel":true,"cancelledBy":"person"}}`))
	target := &v1alpha1.Operation{}
	target.Namespace, target.Name = v1alpha1.Namespace, op.Name
	if err := d.api.Client.Patch(t.Context(), target, patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the receipt lists nothing", func() bool { return len(receipt(t, d, w, "k").Status.Leftovers) == 0 })
	if process.Alive(int(family.PID), family.StartTime) {
		t.Error("the processes live on")
	}
	now := receipt(t, d, w, "k")
	if now.Succeeded().Reason != v1alpha1.ReasonSucceeded || now.Status.CancelledBy != "" || !now.Status.CompletionTime.Equal(op.Status.CompletionTime) {
		t.Errorf("the outcome changed: %+v", now.Status)
	}
	left := &v1alpha1.OperationList{}
	eventually(t, "no operation is active", func() bool {
		if err := d.api.Client.List(t.Context(), left, client.MatchingFields{"status.active": "true"}); err != nil {
			t.Fatal(err)
		}
		return len(left.Items) == 0
	})
	if res := call(t, c, "workspace_close", e2e.Args{"workspace_id": w}); res.IsError {
		t.Error(res.Text())
	}
	if err := d.api.Client.Get(t.Context(), server.Key(w), &v1alpha1.Workspace{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the workspace is still there: %v", err)
	}
}

// What a command left running is listed as long as it runs, and no longer.
func TestLeftoversThatEnd(t *testing.T) {
	d, c := running(t, &settings{})
	dir := t.TempDir()
	w := open(t, c, dir)
	call(t, c, "bash", e2e.Args{"workspace_id": w, "request_key": "k", "command": "(while [ ! -e over ]; do sleep 0.02; done) >/dev/null 2>&1 & sleep 600 >/dev/null 2>&1 &"})
	op := receipt(t, d, w, "k")
	if len(op.Status.Leftovers) < 2 || op.Status.Leftovers[0].BeginTime == nil || !op.Active() {
		t.Fatalf("receipt %+v", op.Status)
	}
	if err := os.WriteFile(filepath.Join(dir, "over"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "only one is listed", func() bool { return len(receipt(t, d, w, "k").Status.Leftovers) == 1 })
	if name := receipt(t, d, w, "k").Status.Leftovers[0].Command; name != "sleep" {
		t.Errorf("%s is listed", name)
	}
	// To delete the receipt is to stop what it stands for.
	family := *op.Status.Attempt.Process
	if err := d.api.Client.Delete(t.Context(), op); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the receipt is gone", func() bool { return apierrors.IsNotFound(d.api.Client.Get(t.Context(), server.Key(op.Name), op)) })
	if process.Alive(int(family.PID), family.StartTime) {
		t.Error("its processes live on")
	}
}
