// Command seed fills the store of a daemon that does not run with receipts, as years of work would leave them: it
// copies, again and again under another key, the receipt of a call that a daemon has made in that store.
//
//	go run ./hack/seed --state-dir DIR --receipts N
//
// It goes through the API's own registry, without the waits for the disk that a daemon needs before each step; at
// the end all is on the disk. hack/bench measures with it what many receipts cost.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/server"
	"github.com/rigbridge/rigbridge/api/storage"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// maxObject is the daemon's own bound of an object in the store, in bytes.
const maxObject = 96 << 10

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	state := flag.String("state-dir", "", "state `directory` of a daemon that does not run")
	receipts := flag.Int("receipts", 0, "how many receipts to add")
	flag.Parse()
	if err := run(ctx, *state, *receipts); err != nil {
		fmt.Fprintln(os.Stderr, "seed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, state string, receipts int) (err error) {
	dir := filepath.Join(state, "store")
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("a daemon must have worked in the state directory: %w", err)
	}
	db, err := storage.Open(storage.Options{Dir: dir, MaxObjectBytes: maxObject})
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	api, err := server.New(server.Options{DB: db, Exchange: exchange.New(), Version: "seed"})
	if err != nil {
		return err
	}
	defer api.Close()
	model, err := model(ctx, api.Client)
	if err != nil {
		return err
	}
	last, err := copies(ctx, api.Client, model, receipts)
	if err != nil || last == "" {
		return err
	}
	return api.WaitDurable(ctx, last)
}

// model is a receipt that a daemon has left.
func model(ctx context.Context, c client.Client) (*v1alpha1.Operation, error) {
	list := &v1alpha1.OperationList{}
	if err := c.List(ctx, list, client.InNamespace(v1alpha1.Namespace), client.Limit(100)); err != nil {
		return nil, fmt.Errorf("look for a receipt: %w", err)
	}
	for i := range list.Items {
		if op := &list.Items[i]; op.Spec.Tool.Keyed() && op.Over() {
			return op, nil
		}
	}
	return nil, errors.New("the store has no receipt to copy: have a daemon make a call there first")
}

// copies makes receipts and returns the resourceVersion of the last.
func copies(ctx context.Context, c client.Client, model *v1alpha1.Operation, n int) (last string, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range n - 1 {
		group.Go(func() error {
			_, err := copyOf(ctx, c, model, fmt.Sprintf("seeded-%d", i))
			return err
		})
	}
	if err := group.Wait(); err != nil || n == 0 {
		return "", err
	}
	return copyOf(context.WithoutCancel(ctx), c, model, "seeded-last")
}

// copyOf makes one receipt, in two steps as the daemon does, and returns its resourceVersion.
func copyOf(ctx context.Context, c client.Client, model *v1alpha1.Operation, key string) (string, error) {
	op := &v1alpha1.Operation{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.Namespace}, Spec: *model.Spec.DeepCopy()}
	op.Spec.RequestKey = key
	op.Name = v1alpha1.OperationName(op.Spec.WorkspaceRef.Name, key)
	if err := c.Create(ctx, op); err != nil {
		return "", fmt.Errorf("make a receipt: %w", err)
	}
	op.Status = *model.Status.DeepCopy()
	if err := c.Status().Update(ctx, op); err != nil {
		return "", fmt.Errorf("record an outcome: %w", err)
	}
	return op.ResourceVersion, nil
}
