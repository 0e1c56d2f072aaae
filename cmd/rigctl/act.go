package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// patience says whether a verb waits for what it brought about, and how long.
type patience struct {
	wait    bool
	timeout time.Duration
}

func (p *patience) flags(c *cobra.Command, what string) {
	c.Flags().BoolVar(&p.wait, "wait", true, "wait until "+what)
	c.Flags().DurationVar(&p.timeout, "timeout", time.Minute, "how long to wait; negative waits a week")
}

// named selects objects of a type by arguments NAME or TYPE/NAME.
func (c *connection) named(ctx context.Context, resourceName string, names []string) ([]*resource.Info, error) {
	if err := c.reachable(ctx); err != nil {
		return nil, err
	}
	for _, name := range names {
		if kind, _, ok := strings.Cut(name, "/"); ok {
			if m, err := c.mappingFor(kind); err != nil || m.Resource.Resource != resourceName {
				return nil, fmt.Errorf("%s is not one of the %s", name, resourceName)
			}
		}
	}
	return c.builder().ResourceNames(resourceName, names...).Flatten().Do().Infos()
}

func deleteCommand(conn *connection) *cobra.Command {
	var p patience
	var labels, fields, dryRun string
	var all, ignoreNotFound bool
	c := &cobra.Command{
		Use:   "delete (TYPE NAME... | TYPE/NAME... | TYPE -l SELECTOR | TYPE --all)",
		Short: "Delete objects; a running operation and the operations of a workspace are stopped first",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(c, "say what to delete")
			}
			if dryRun != "none" && dryRun != "server" {
				return usage(c, "--dry-run is none or server, not %q", dryRun)
			}
			if err := conn.reachable(c.Context()); err != nil {
				return err
			}
			b := conn.builder().LabelSelectorParam(labels).FieldSelectorParam(fields).ResourceTypeOrNameArgs(all || fields != "", args...).
				RequestChunksOf(500).Flatten()
			r := b.Do()
			if ignoreNotFound || all || labels != "" {
				r.IgnoreErrors(isNotFound)
			}
			infos, err := r.Infos()
			if derr := conn.delete(c.Context(), infos, p, dryRun == "server", "deleted"); derr != nil {
				return derr
			}
			if err == nil && len(infos) == 0 && !ignoreNotFound {
				fmt.Fprintln(conn.streams.ErrOut, "No resources found")
			}
			return err
		},
	}
	p.flags(c, "the objects are gone")
	c.Flags().StringVarP(&labels, "selector", "l", "", "label selector")
	c.Flags().StringVar(&fields, "field-selector", "", "field selector")
	c.Flags().BoolVar(&all, "all", false, "all objects of the type")
	c.Flags().BoolVar(&ignoreNotFound, "ignore-not-found", false, "what is not there counts as deleted")
	c.Flags().StringVar(&dryRun, "dry-run", "none", "server: only try whether it could be done")
	return c
}

// delete deletes all first and then waits for all. done is the word for it.
func (c *connection) delete(ctx context.Context, infos []*resource.Info, p patience, dryRun bool, done string) error {
	for _, info := range infos {
		uid := asUnstructured(info.Object).GetUID()
		o := &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(uid))}
		note := ""
		if dryRun {
			o.DryRun, note = []string{metav1.DryRunAll}, " (server dry run)"
		}
		_, err := resource.NewHelper(info.Client, info.Mapping).DeleteWithOptions(info.Namespace, info.Name, o)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		fmt.Fprintf(c.streams.Out, "%s %q %s%s\n", singular(info.Mapping), info.Name, done, note)
	}
	if dryRun || !p.wait {
		return nil
	}
	ctx, cancel := withTimeout(ctx, p.timeout)
	defer cancel()
	for _, info := range infos {
		if err := c.until(ctx, info.Mapping, info.Name, isGone(asUnstructured(info.Object))); err != nil {
			return err
		}
	}
	return nil
}

func closeCommand(conn *connection) *cobra.Command {
	var p patience
	c := &cobra.Command{
		Use:   "close WORKSPACE...",
		Short: "Close workspaces: stop their operations and wait until they are gone",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			infos, err := conn.named(c.Context(), "workspaces", args)
			if err != nil {
				return err
			}
			return conn.delete(c.Context(), infos, p, false, "closed")
		},
	}
	p.flags(c, "the workspaces are gone")
	return c
}

func cancelCommand(conn *connection) *cobra.Command {
	var p patience
	c := &cobra.Command{
		Use:   "cancel OPERATION...",
		Short: "Stop operations and what their commands left running, and wait until that has ended",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			infos, err := conn.named(c.Context(), "operations", args)
			if err != nil {
				return err
			}
			return conn.cancel(c.Context(), infos, p)
		},
	}
	p.flags(c, "nothing of the operations runs any more")
	return c
}

// cancel asks all operations to stop and then waits for all. The outcome of one that is over stays.
func (c *connection) cancel(ctx context.Context, infos []*resource.Info, p patience) error {
	const patch = `{"spec":{"cancel":true,"cancelledBy":"person"}}`
	var asked []*resource.Info
	for _, info := range infos {
		if o, err := operationOf(info); err != nil {
			return err
		} else if !o.Active() {
			fmt.Fprintf(c.streams.Out, "%s is over already (%s)\n", title(info), o.Succeeded().Reason)
			continue
		}
		if _, err := resource.NewHelper(info.Client, info.Mapping).Patch(info.Namespace, info.Name, types.MergePatchType, []byte(patch), nil); err != nil {
			return err
		}
		asked = append(asked, info)
		if !p.wait {
			fmt.Fprintf(c.streams.Out, "%s asked to stop\n", title(info))
		}
	}
	if !p.wait {
		return nil
	}
	ctx, cancel := withTimeout(ctx, p.timeout)
	defer cancel()
	for _, info := range asked {
		if err := c.awaitStop(ctx, info); err != nil {
			return err
		}
	}
	return nil
}

// awaitStop waits until nothing of an operation runs any more. A volatile one may be gone before that was seen.
func (c *connection) awaitStop(ctx context.Context, info *resource.Info) error {
	before, err := operationOf(info)
	if err != nil {
		return err
	}
	last := &v1alpha1.Operation{}
	last.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Reason: v1alpha1.ReasonCancelled}}
	err = c.until(ctx, info.Mapping, info.Name, func(u *unstructured.Unstructured) (bool, error) {
		if u == nil {
			return true, nil
		}
		var err error
		last, err = typed[v1alpha1.Operation](u)
		return err == nil && !last.Active(), err
	})
	switch {
	case errors.Is(err, errTimedOut) && last.Over() && len(last.Status.Leftovers) > 0:
		p := last.Status.Leftovers[0]
		return fmt.Errorf("%w: %d processes did not end, the first is pid %d (%s); they may belong to another account", err, len(last.Status.Leftovers), p.PID, p.Command)
	case err != nil:
		return err
	case before.Over():
		fmt.Fprintf(c.streams.Out, "%s was over already (%s); what it left running is stopped\n", title(info), before.Succeeded().Reason)
	default:
		fmt.Fprintf(c.streams.Out, "%s stopped (%s)\n", title(info), last.Succeeded().Reason)
	}
	return nil
}

func ackCommand(conn *connection) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "ack (HANDOFF... | --all)",
		Short: "Mark handoffs as read",
		RunE: func(c *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return usage(c, "give names or --all")
			}
			infos, err := conn.handoffs(c.Context(), args)
			if err != nil {
				return err
			}
			for _, info := range infos {
				if _, err := resource.NewHelper(info.Client, info.Mapping).Patch(info.Namespace, info.Name, types.MergePatchType, []byte(`{"spec":{"acknowledged":true}}`), nil); err != nil {
					return err
				}
				fmt.Fprintf(conn.streams.Out, "%s acknowledged\n", title(info))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&all, "all", false, "all that nobody has read")
	return c
}

// handoffs selects handoffs by name, or all unread ones.
func (c *connection) handoffs(ctx context.Context, names []string) ([]*resource.Info, error) {
	if len(names) > 0 {
		return c.named(ctx, "handoffs", names)
	}
	if err := c.reachable(ctx); err != nil {
		return nil, err
	}
	return c.builder().FieldSelectorParam("spec.acknowledged=false").ResourceTypeOrNameArgs(true, "handoffs").Flatten().Do().Infos()
}

// title is how an object is called in one word: operation.rigbridge.dev/NAME.
func title(info *resource.Info) string { return singular(info.Mapping) + "/" + info.Name }

func singular(m *meta.RESTMapping) string {
	return strings.ToLower(m.GroupVersionKind.Kind) + "." + m.GroupVersionKind.Group
}

func isNotFound(err error) bool { return apierrors.IsNotFound(err) }

// typeAndNames takes TYPE NAME... or TYPE/NAME... apart.
func typeAndNames(args []string) (kind string, names []string) {
	if t, _, ok := strings.Cut(args[0], "/"); ok {
		for _, arg := range args {
			_, name, _ := strings.Cut(arg, "/")
			names = append(names, name)
		}
		return t, names
	}
	return args[0], args[1:]
}

func operationOf(info *resource.Info) (*v1alpha1.Operation, error) {
	return typed[v1alpha1.Operation](asUnstructured(info.Object))
}
