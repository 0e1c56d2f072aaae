package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

func pruneCommand(conn *connection) *cobra.Command {
	var age string
	var dryRun bool
	c := &cobra.Command{
		Use:   "prune --older-than AGE",
		Short: "Remove the receipts of operations that ended long ago",
		Long: "Remove the receipts of operations that ended longer ago than AGE. Nothing else removes them.\n" +
			"A retry of a removed operation's request key is no longer recognised and would run again.",
		Example: "  rigctl prune --older-than 90d --dry-run",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := parseAge(age)
			if err != nil {
				return usage(c, "%v", err)
			}
			if err := conn.reachable(c.Context()); err != nil {
				return err
			}
			return conn.prune(c.Context(), time.Now().Add(-d), dryRun)
		},
	}
	c.Flags().StringVar(&age, "older-than", "", "age such as 90d, 12h or 1h30m")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be removed and remove nothing")
	return c
}

// parseAge understands days beside the units of time.ParseDuration.
func parseAge(s string) (time.Duration, error) {
	if s == "" {
		return 0, fmt.Errorf("--older-than is missing")
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("the age %q is not understood; use for instance 90d or 12h", s)
	}
	return d, nil
}

// prune removes receipts of operations that ended before a time. A page is read before any of it is removed, so
// the position in the list stays valid.
func (c *connection) prune(ctx context.Context, before time.Time, dryRun bool) error {
	client, err := c.ownClient()
	if err != nil {
		return err
	}
	removed := 0
	o := metav1.ListOptions{FieldSelector: "status.active=false", Limit: 500}
	for {
		var page v1alpha1.OperationList
		err := c.list(ctx, client, "operations", o, &page)
		if next := whereToGoOn(err); next != "" {
			o.Continue = next
			continue
		}
		if err != nil {
			return err
		}
		for i := range page.Items {
			op := &page.Items[i]
			if !op.Spec.Tool.Keyed() || !endedBefore(op, before) {
				continue
			}
			if err := c.removeReceipt(ctx, client, op, dryRun); err != nil {
				return err
			}
			removed++
		}
		if o.Continue = page.Continue; o.Continue == "" {
			break
		}
	}
	verb := "removed"
	if dryRun {
		verb = "would be removed"
	}
	fmt.Fprintf(c.streams.Out, "%d receipts %s\n", removed, verb)
	return nil
}

// whereToGoOn returns the place in a list at which to go on when the list is too old to be told as it was, which enough
// removals make it; nothing that is older is passed over. It is empty for other errors.
func whereToGoOn(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

func endedBefore(o *v1alpha1.Operation, t time.Time) bool {
	if o.Status.CompletionTime != nil {
		return o.Status.CompletionTime.Time.Before(t)
	}
	return o.CreationTimestamp.Time.Before(t)
}

func (c *connection) removeReceipt(ctx context.Context, client rest.Interface, o *v1alpha1.Operation, dryRun bool) error {
	if dryRun {
		fmt.Fprintf(c.streams.Out, "operation.%s/%s\n", v1alpha1.GroupName, o.Name)
		return nil
	}
	err := client.Delete().Namespace(c.namespace).Resource("operations").Name(o.Name).
		Body(&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion}}).Do(ctx).Error()
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // removed or changed by somebody else meanwhile
		return nil
	}
	return err
}
