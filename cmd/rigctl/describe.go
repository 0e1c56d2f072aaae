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
				if derr := describe(conn.streams.Out, info, time.Now()); derr != nil {
					return derr
				}
				if derr := conn.describeRequest(c.Context(), info); derr != nil {
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

// describe prints metadata, spec, status and conditions. Fields have the names that they have in YAML.
func describe(out io.Writer, info *resource.Info, now time.Time) error {
	u := asUnstructured(info.Object)
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
	if err := w.Flush(); err != nil {
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
	if err := printPart(out, "Spec", u.Object["spec"]); err != nil {
		return err
	}
	if err := printPart(out, "Status", status); err != nil {
		return err
	}
	return printConditions(out, conditions, now)
}

// describeRequest prints what an operation was called with, while the daemon has it in memory.
func (c *connection) describeRequest(ctx context.Context, info *resource.Info) error {
	if info.Mapping.GroupVersionKind.GroupKind() != v1alpha1.GroupVersion.WithKind("Operation").GroupKind() {
		return nil
	}
	client, err := c.client(v1alpha1.GroupVersion)
	if err != nil {
		return err
	}
	if arguments := c.request(ctx, client, info.Name); arguments != nil {
		return printPart(c.streams.Out, "Request", arguments)
	}
	return nil
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
