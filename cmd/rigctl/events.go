package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/cli-runtime/pkg/resource"
)

// eventsCommand is get events with kubectl's flags for them, the latest last.
func eventsCommand(conn *connection) *cobra.Command {
	g := &get{connection: conn}
	var about, types string
	c := &cobra.Command{
		Use:   "events [--for TYPE/NAME]",
		Short: "Print what happened to objects in the last hour, since the daemon was started",
		Example: "  rigctl events --for op/NAME\n" +
			"  rigctl events --types=Warning -w",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := conn.reachable(c.Context()); err != nil {
				return err
			}
			var err error
			if g.fields, err = conn.eventSelector(about, types); err != nil {
				return usage(c, "%v", err)
			}
			if !g.watch && g.sortBy == "" {
				g.sortBy = ".lastTimestamp"
			}
			return g.run(c.Context(), []string{"events"})
		},
	}
	g.output = newOutput(c)
	c.Flags().StringVar(&about, "for", "", "only what happened to this object: TYPE/NAME")
	c.Flags().StringVar(&types, "types", "", "only events of this type: Normal or Warning")
	c.Flags().BoolVarP(&g.all, "all-namespaces", "A", false, "events of all namespaces")
	c.Flags().BoolVarP(&g.watch, "watch", "w", false, "after the list print each new one; goes on when the daemon restarts")
	c.Flags().Int64Var(&g.chunk, "chunk-size", 500, "how many events to ask for at once; 0 asks for all")
	return c
}

// eventSelector is the field selector of events about an object and of a type.
func (c *connection) eventSelector(about, types string) (string, error) {
	set := fields.Set{}
	if about != "" {
		kind, name, ok := strings.Cut(about, "/")
		if !ok || kind == "" || name == "" {
			return "", fmt.Errorf("--for takes TYPE/NAME, not %q", about)
		}
		m, err := c.mappingFor(kind)
		if err != nil {
			return "", err
		}
		set["involvedObject.kind"], set["involvedObject.name"] = m.GroupVersionKind.Kind, name
	}
	if types != "" {
		known := []string{corev1.EventTypeNormal, corev1.EventTypeWarning}
		at := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, types) })
		if at < 0 {
			return "", fmt.Errorf("--types is Normal or Warning, not %q", types)
		}
		set["type"] = known[at]
	}
	return set.AsSelector().String(), nil
}

// eventsOf returns the events about an object, the latest last.
func (c *connection) eventsOf(ctx context.Context, info *resource.Info) ([]corev1.Event, error) {
	client, err := c.typedClient(corev1.AddToScheme, corev1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	var l corev1.EventList
	about := fields.OneTermEqualSelector("involvedObject.uid", string(asUnstructured(info.Object).GetUID())).String()
	if err := c.list(ctx, client, "events", metav1.ListOptions{FieldSelector: about}, &l); err != nil {
		return nil, err
	}
	slices.SortStableFunc(l.Items, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return l.Items, nil
}
