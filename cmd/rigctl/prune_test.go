package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/server"
	"github.com/rigbridge/rigbridge/api/socket"
	"github.com/rigbridge/rigbridge/api/storage"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// TestPruneGoesOnInAListThatIsTooOld: removing a page of receipts makes more history than the store keeps, so the next
// page cannot be told as it was. Years of receipts go all the same, in one command.
func TestPruneGoesOnInAListThatIsTooOld(t *testing.T) {
	state := t.TempDir()
	db, err := storage.Open(storage.Options{Dir: filepath.Join(state, "store"), HistoryEvents: 2, HistoryRevisions: 4})
	if err != nil {
		t.Fatal(err)
	}
	api, err := server.New(server.Options{DB: db, Exchange: exchange.New(), Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(state, socket.File))
	if err != nil {
		t.Fatal(err)
	}
	daemon := &http.Server{Handler: api.Handler}
	go func() { _ = daemon.Serve(l) }() // it ends with the test
	t.Cleanup(func() {
		_ = daemon.Close() // before what it serves
		api.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	const receipts = 1100 // three pages
	for i := range receipts {
		makeReceipt(t, api.Client, fmt.Sprint(i))
	}

	var out bytes.Buffer
	c := &connection{dirFlag: state, namespace: v1alpha1.Namespace, streams: genericiooptions.IOStreams{Out: &out, ErrOut: &out}}
	for _, dryRun := range []bool{true, false} {
		out.Reset()
		if err := c.prune(t.Context(), time.Now().Add(time.Hour), dryRun); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%d receipts ", receipts); !strings.Contains(out.String(), want) {
			t.Errorf("dry run %v: %q, want %s", dryRun, out.String(), want)
		}
	}
	left := &v1alpha1.OperationList{}
	if err := api.Client.List(t.Context(), left); err != nil || len(left.Items) != 0 {
		t.Errorf("%d receipts are left, %v", len(left.Items), err)
	}
}

func makeReceipt(t *testing.T, c client.Client, key string) {
	t.Helper()
	op := &v1alpha1.Operation{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.Namespace, Name: v1alpha1.OperationName("w", key)},
		Spec: v1alpha1.OperationSpec{WorkspaceRef: v1alpha1.LocalReference{Name: "w"}, Tool: v1alpha1.ToolWrite, RequestKey: key,
			ArgumentsDigest: "hmac-sha256:" + strings.Repeat("0", 64)},
	}
	if err := c.Create(t.Context(), op); err != nil {
		t.Fatal(err)
	}
	now := metav1.NowMicro()
	op.Status.Phase, op.Status.CompletionTime = v1alpha1.OperationSucceeded, &now
	op.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: "Succeeded", LastTransitionTime: metav1.Now()}}
	if err := c.Status().Update(t.Context(), op); err != nil {
		t.Fatal(err)
	}
}
