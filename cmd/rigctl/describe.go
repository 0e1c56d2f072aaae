package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

func describeCommand(conn *connection) *cobra.Command {
	var labels, fields string
	c := &cobra.Command{
		Use:   "describe (TYPE [NAME...] | TYPE/NAME...)",
		Short: "Tell all about objects, for people: what was asked, where it stands, what to do",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(c, "say what to describe")
			}
			if err := conn.reachable(c.Context()); err != nil {
				return err
			}
			infos, err := conn.builder().LabelSelectorParam(labels).FieldSelectorParam(fields).RequestChunksOf(500).ResourceTypeOrNameArgs(true, args...).Flatten().Do().Infos()
			for i, info := range infos {
				if i > 0 {
					fmt.Fprint(conn.streams.Out, "\n\n")
				}
				if derr := conn.describe(c.Context(), info, time.Now()); derr != nil {
					return derr
				}
			}
			if err == nil && len(infos) == 0 {
				fmt.Fprintf(conn.streams.ErrOut, "No resources found in %s namespace.\n", conn.namespace)
			}
			return err
		},
	}
	c.Flags().StringVarP(&labels, "selector", "l", "", "label selector")
	c.Flags().StringVar(&fields, "field-selector", "", "field selector")
	return c
}

// describe prints metadata, spec, status and conditions, what belongs to an operation alone, and events. Fields have
// the names that they have in YAML.
func (c *connection) describe(ctx context.Context, info *resource.Info, now time.Time) error {
	out, u := c.streams.Out, asUnstructured(info.Object)
	if err := printMetadata(out, u, now); err != nil {
		return err
	}
	status, _, err := unstructured.NestedMap(u.Object, "status")
	if err != nil {
		return err
	}
	conditions, err := conditionsOf(status)
	if err != nil {
		return err
	}
	delete(status, "conditions")
	delete(status, "leftovers")
	if err := printPart(out, "Spec", u.Object["spec"]); err != nil {
		return err
	}
	if err := printPart(out, "Status", status); err != nil {
		return err
	}
	if err := printConditions(out, conditions, now); err != nil {
		return err
	}
	if info.Mapping.GroupVersionKind.GroupKind() == v1alpha1.GroupVersion.WithKind("Operation").GroupKind() {
		if err := c.describeOperation(ctx, info, now); err != nil {
			return err
		}
	}
	return c.describeEvents(ctx, info, now)
}

func printMetadata(out io.Writer, u *unstructured.Unstructured, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "Name:\t%s\nNamespace:\t%s\nKind:\t%s (%s)\n", u.GetName(), u.GetNamespace(), u.GetKind(), u.GetAPIVersion())
	fmt.Fprintf(w, "Labels:\t%s\nAnnotations:\t%s\n", pairs(u.GetLabels()), pairs(u.GetAnnotations()))
	fmt.Fprintf(w, "Created:\t%s\n", when(u.GetCreationTimestamp().Time, now))
	if at := u.GetDeletionTimestamp(); at != nil {
		fmt.Fprintf(w, "Deleted:\t%s, waits for %s\n", when(at.Time, now), strings.Join(u.GetFinalizers(), ", "))
	}
	for _, owner := range u.GetOwnerReferences() {
		fmt.Fprintf(w, "Owner:\t%s/%s\n", owner.Kind, owner.Name)
	}
	return w.Flush()
}

// describeOperation prints what an operation was called with, while the daemon has it in memory, what it holds and
// what it left running, and what a repetition of the call does.
func (c *connection) describeOperation(ctx context.Context, info *resource.Info, now time.Time) error {
	op, err := operationOf(info)
	if err != nil {
		return err
	}
	client, err := c.client(v1alpha1.GroupVersion)
	if err != nil {
		return err
	}
	if arguments := c.request(ctx, client, info.Name); arguments != nil {
		if err := printPart(c.streams.Out, "Request", arguments); err != nil {
			return err
		}
	}
	if a := op.Status.Attempt; a != nil && a.Path != "" && !op.Over() {
		fmt.Fprintf(c.streams.Out, "Holds:\n  %s, so that no other call changes it meanwhile\n", clean(a.Path))
	}
	if err := printLeftovers(c.streams.Out, op, now); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.streams.Out, "Retry:\n  %s\n", retry(op))
	return err
}

// printLeftovers prints processes that outlived an operation's command, and how to stop them.
func printLeftovers(out io.Writer, op *v1alpha1.Operation, now time.Time) error {
	if !op.Over() || len(op.Status.Leftovers) == 0 {
		return nil
	}
	fmt.Fprintln(out, "Left running:")
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, p := range op.Status.Leftovers {
		age := "?"
		if p.BeginTime != nil {
			age = duration.HumanDuration(now.Sub(p.BeginTime.Time))
		}
		fmt.Fprintf(w, "  pid %d\t%s\t%s\n", p.PID, clean(p.Command), age)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "  stop: rigctl cancel %s\n", op.Name)
	return err
}

// retry says what a repetition of the call does.
func retry(op *v1alpha1.Operation) string {
	const newKey = "To do it again takes a new request_key."
	switch reason := op.Succeeded().Reason; {
	case !op.Spec.Tool.Keyed():
		return "It changes nothing: the call can simply be made again."
	case !op.Over():
		return "The same call with the same request_key waits for this one."
	case reason == v1alpha1.ReasonNotStarted:
		return "Nothing was done: the same call with the same request_key runs now."
	case op.Spec.Tool.ManagesWork() && op.Status.Code != "":
		return "Nothing was done, and the request_key is free: the call can be made again with it."
	case reason == v1alpha1.ReasonOutcomeUncertain:
		return "The same call is never run again: it may have had its effect. Inspect what the message names first. " + newKey
	case op.Status.Code == v1alpha1.CodeRevisionConflict:
		return "Nothing was done. Read the file again and call with its present revision and a new request_key."
	case op.Status.Code != "" && !op.Status.EffectsMayHaveOccurred:
		return "Nothing was done. The same request_key is answered with this outcome. " + newKey
	}
	return "The same call with the same request_key is answered with this outcome; nothing runs. " + newKey
}

// describeEvents prints what happened to an object in the last hour.
func (c *connection) describeEvents(ctx context.Context, info *resource.Info, now time.Time) error {
	events, err := c.eventsOf(ctx, info)
	if err != nil {
		return err
	}
	if len(events) == 0 {
		_, err := fmt.Fprintf(c.streams.Out, "Events:  %s\n", none)
		return err
	}
	fmt.Fprintln(c.streams.Out, "Events:")
	w := tabwriter.NewWriter(c.streams.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "  TYPE\tREASON\tAGE\tMESSAGE")
	for _, e := range events {
		age := duration.HumanDuration(now.Sub(e.LastTimestamp.Time))
		if e.Count > 1 {
			age += fmt.Sprintf(" (x%d over %s)", e.Count, duration.HumanDuration(now.Sub(e.FirstTimestamp.Time)))
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", e.Type, e.Reason, age, clean(strings.TrimSpace(strings.ReplaceAll(e.Message, "\n", " "))))
	}
	return w.Flush()
}

func pairs(m map[string]string) string {
	if len(m) == 0 {
		return none
	}
	var all []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, k+"="+m[k])
	}
	return strings.Join(all, ", ")
}

func when(t, now time.Time) string {
	return fmt.Sprintf("%s (%s ago)", t.Local().Format(time.DateTime), duration.HumanDuration(now.Sub(t)))
}

// printPart prints a part of an object as indented YAML.
func printPart(out io.Writer, title string, part any) error {
	if m, ok := part.(map[string]any); ok && len(m) == 0 {
		return nil
	}
	b, err := yaml.Marshal(part)
	if err != nil {
		return err
	}
	indented := strings.ReplaceAll(strings.TrimRight(string(b), "\n"), "\n", "\n  ")
	_, err = fmt.Fprintf(out, "%s:\n  %s\n", title, indented)
	return err
}

func conditionsOf(status map[string]any) (all []metav1.Condition, err error) {
	list, _, err := unstructured.NestedSlice(status, "conditions")
	if err != nil {
		return nil, err
	}
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		var c metav1.Condition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &c); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// printConditions prints conditions with their messages, which say what to do.
func printConditions(out io.Writer, conditions []metav1.Condition, now time.Time) error {
	if len(conditions) == 0 {
		return nil
	}
	fmt.Fprintln(out, "Conditions:")
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "  TYPE\tSTATUS\tREASON\tSINCE")
	for _, c := range conditions {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", c.Type, c.Status, c.Reason, duration.HumanDuration(now.Sub(c.LastTransitionTime.Time)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, c := range conditions {
		if c.Message != "" {
			fmt.Fprintf(out, "%s: %s\n", c.Reason, c.Message)
		}
	}
	return nil
}
