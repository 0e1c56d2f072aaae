package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
)

func waitCommand(conn *connection) *cobra.Command {
	var what, labels, fields string
	var timeout time.Duration
	var all bool
	c := &cobra.Command{
		Use:   "wait (TYPE NAME... | TYPE/NAME... | TYPE -l SELECTOR | TYPE --all) --for=CONDITION",
		Short: "Wait until objects are as wanted; exit 1 if they are not in time",
		Example: "  rigctl wait op NAME --for=condition=Succeeded --timeout=5m\n  rigctl wait ws NAME --for=delete\n" +
			"  rigctl wait run NAME --for=jsonpath={.status.phase}=Completed",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(c, "say what to wait for")
			}
			if err := conn.reachable(c.Context()); err != nil {
				return err
			}
			w := &waiter{connection: conn}
			var err error
			if w.done, w.absent, err = parseGoal(what); err != nil {
				return usage(c, "%v", err)
			}
			ctx, cancel := withTimeout(c.Context(), timeout)
			defer cancel()
			b := conn.builder().LabelSelectorParam(labels).FieldSelectorParam(fields).ResourceTypeOrNameArgs(all, args...).Flatten()
			return w.run(ctx, b, args)
		},
	}
	c.Flags().StringVar(&what, "for", "", "condition=TYPE[=STATUS], delete, create, or jsonpath=PATH[=VALUE]")
	c.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait for all; 0 looks once, negative waits a week")
	c.Flags().StringVarP(&labels, "selector", "l", "", "label selector")
	c.Flags().StringVar(&fields, "field-selector", "", "field selector")
	c.Flags().BoolVar(&all, "all", false, "all objects of the type")
	return c
}

// longest is how long is waited when no timeout is wanted.
const longest = 7 * 24 * time.Hour

func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	switch {
	case timeout < 0:
		timeout = longest
	case timeout == 0:
		timeout = time.Second // enough to look once on a busy machine
	}
	return context.WithTimeout(ctx, timeout)
}

// waiter waits for objects in turn, all within one timeout.
type waiter struct {
	*connection
	done   func(before *unstructured.Unstructured) reached
	absent goalOfAbsence
}

// goalOfAbsence says what it means that an object to wait for is not there.
type goalOfAbsence int

const (
	absentIsError goalOfAbsence = iota
	absentIsReached
	absentIsWaited
)

func (w *waiter) run(ctx context.Context, b *resource.Builder, args []string) error {
	if w.absent == absentIsWaited {
		return w.awaitCreation(ctx, args)
	}
	r := b.Do()
	if w.absent == absentIsReached {
		r.IgnoreErrors(isNotFound)
	}
	infos, err := r.Infos()
	if err != nil {
		return err
	}
	if len(infos) == 0 && w.absent == absentIsError {
		return fmt.Errorf("no matching resources found")
	}
	for _, info := range infos {
		before := asUnstructured(info.Object)
		if err := w.until(ctx, info.Mapping, info.Name, w.done(before)); err != nil {
			return err
		}
		fmt.Fprintf(w.streams.Out, "%s condition met\n", title(info))
	}
	return nil
}

// awaitCreation waits for objects that a lookup would not find yet.
func (w *waiter) awaitCreation(ctx context.Context, args []string) error {
	kind, names := typeAndNames(args)
	mapping, err := w.mappingFor(kind)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("name what is to be created")
	}
	for _, name := range names {
		if err := w.until(ctx, mapping, name, w.done(nil)); err != nil {
			return err
		}
		fmt.Fprintf(w.streams.Out, "%s/%s condition met\n", singular(mapping), name)
	}
	return nil
}

// parseGoal understands the value of --for.
func parseGoal(what string) (goal func(*unstructured.Unstructured) reached, absent goalOfAbsence, err error) {
	kind, rest, _ := strings.Cut(what, "=")
	always := func(r reached) func(*unstructured.Unstructured) reached {
		return func(*unstructured.Unstructured) reached { return r }
	}
	switch strings.ToLower(kind) {
	case "delete":
		return func(u *unstructured.Unstructured) reached { return isGone(u) }, absentIsReached, nil
	case "create":
		return always(func(u *unstructured.Unstructured) (bool, error) { return u != nil, nil }), absentIsWaited, nil
	case "condition":
		name, status, given := strings.Cut(rest, "=")
		if !given {
			status = string(metav1.ConditionTrue)
		}
		if name != "" {
			return always(hasCondition(name, status)), absentIsError, nil
		}
	case "jsonpath":
		r, err := hasValue(rest)
		return always(r), absentIsError, err
	}
	return nil, absentIsError, fmt.Errorf("--for=%s is not understood; use condition=TYPE[=STATUS], delete, create or jsonpath=PATH[=VALUE]", what)
}

// hasCondition looks for a condition that describes the present generation.
func hasCondition(name, status string) reached {
	return func(u *unstructured.Unstructured) (bool, error) {
		if u == nil {
			return false, fmt.Errorf("the object is gone")
		}
		conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
		if err != nil {
			return false, err
		}
		for _, c := range conditions {
			c, ok := c.(map[string]any)
			if !ok || !strings.EqualFold(fmt.Sprint(c["type"]), name) {
				continue
			}
			if seen, ok := c["observedGeneration"].(int64); ok && seen < u.GetGeneration() {
				return false, nil
			}
			return strings.EqualFold(fmt.Sprint(c["status"]), status), nil
		}
		return false, nil
	}
}

// hasValue looks for a value at a path: any value if none is given.
func hasValue(rest string) (reached, error) {
	path, want, given := rest, "", false
	if at := strings.LastIndex(rest, "}"); at >= 0 {
		path = rest[:at+1]
		want, given = strings.CutPrefix(rest[at+1:], "=")
	} else if p, v, ok := strings.Cut(rest, "="); ok {
		path, want, given = p, v, true
	}
	p, err := parsePath(path)
	if err != nil {
		return nil, err
	}
	return func(u *unstructured.Unstructured) (bool, error) {
		if u == nil {
			return false, fmt.Errorf("the object is gone")
		}
		found, err := values(p, u)
		if err != nil || len(found) == 0 {
			return false, err
		}
		return !given || fmt.Sprint(found[0]) == want, nil
	}, nil
}
