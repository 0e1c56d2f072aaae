package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
)

// get is the verb that prints objects.
type get struct {
	*connection
	*output
	all               bool
	labels, fields    string
	chunk             int64
	ignoreNotFound    bool
	watch, watchOnly  bool
	outputWatchEvents bool
}

func getCommand(conn *connection) *cobra.Command {
	g := &get{connection: conn}
	c := &cobra.Command{
		Use:   "get (TYPE[,TYPE...] [NAME...] | TYPE/NAME...)",
		Short: "Print objects: projects, threads, workspaces (ws), operations (op), runs, handoffs, tunnels, or rig for all",
		Example: "  rigctl get op -o wide\n  rigctl get op --field-selector spec.tool=bash,status.active=true -w\n" +
			"  rigctl get ws -o custom-columns=NAME:.metadata.name,CWD:.spec.cwd",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(c, "say which type of object to get")
			}
			if err := conn.reachable(c.Context()); err != nil {
				return err
			}
			return g.run(c.Context(), args)
		},
	}
	g.output = newOutput(c)
	c.Flags().BoolVarP(&g.all, "all-namespaces", "A", false, "objects of all namespaces")
	c.Flags().StringVarP(&g.labels, "selector", "l", "", "label selector")
	c.Flags().StringVar(&g.fields, "field-selector", "", "field selector, for instance spec.workspaceRef.name=NAME")
	c.Flags().Int64Var(&g.chunk, "chunk-size", 500, "how many objects to ask for at once; 0 asks for all")
	c.Flags().BoolVar(&g.ignoreNotFound, "ignore-not-found", false, "say nothing and exit 0 when there is no such object")
	c.Flags().BoolVarP(&g.watch, "watch", "w", false, "after the list print each change; goes on when the daemon restarts")
	c.Flags().BoolVar(&g.watchOnly, "watch-only", false, "print each change without the list")
	c.Flags().BoolVar(&g.outputWatchEvents, "output-watch-events", false, "say whether an object was added, modified or deleted")
	return c
}

// watchCommand is get --watch under a name of its own.
func watchCommand(conn *connection) *cobra.Command {
	c := getCommand(conn)
	c.Use, c.Short = "watch (TYPE [NAME] | TYPE/NAME)", "Print objects and then each change of them, over restarts of the daemon"
	c.Example = "  rigctl watch op --field-selector status.active=true"
	if err := c.Flags().Set("watch", "true"); err != nil {
		panic(err) // the flag is defined by getCommand
	}
	return c
}

func (g *get) run(ctx context.Context, args []string) error {
	if g.watch || g.watchOnly {
		return g.follow(ctx, args)
	}
	b := g.builder().AllNamespaces(g.all).LabelSelectorParam(g.labels).FieldSelectorParam(g.fields).
		RequestChunksOf(g.chunk).ResourceTypeOrNameArgs(true, args...)
	if g.table() {
		return g.printTables(b.TransformRequests(g.asTables).Do())
	}
	return g.printObjects(b.Flatten().Do())
}

func (g *get) printObjects(r *resource.Result) error {
	p, err := g.printer()
	if err != nil {
		return err
	}
	if g.ignoreNotFound {
		r.IgnoreErrors(apierrors.IsNotFound)
	}
	single := false
	infos, err := r.IntoSingleItemImplied(&single).Infos()
	if len(infos) == 0 && (err != nil || single) {
		return err
	}
	objects := make([]runtime.Object, len(infos))
	for i, info := range infos {
		objects[i] = info.Object
	}
	if g.sortBy != "" {
		if err := sorted(g.sortBy, objects, func(o runtime.Object) runtime.Object { return o }); err != nil {
			return err
		}
	}
	var obj runtime.Object = asList(objects)
	if single && len(objects) == 1 {
		obj = objects[0]
	}
	if perr := p.PrintObj(obj, g.streams.Out); perr != nil {
		return perr
	}
	return err
}

// asList puts objects of any kinds into one list.
func asList(objects []runtime.Object) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}}}
	for _, o := range objects {
		if u := asUnstructured(o); u != nil {
			list.Items = append(list.Items, *u)
		}
	}
	return list
}

// section is what was found of one kind.
type section struct {
	kind  schema.GroupKind
	table *metav1.Table
}

func (g *get) printTables(r *resource.Result) error {
	if g.ignoreNotFound {
		r.IgnoreErrors(apierrors.IsNotFound)
	}
	infos, err := r.Infos()
	sections, serr := g.sections(infos)
	if serr != nil {
		return serr
	}
	printed := false
	for _, s := range sections {
		if len(s.table.Rows) == 0 {
			continue
		}
		if printed {
			fmt.Fprintln(g.streams.Out)
		}
		printed = true
		if err := g.tablePrinter(s.kind, len(sections) > 1, g.all).PrintObj(s.table, g.streams.Out); err != nil {
			return err
		}
	}
	if !printed && err == nil && !g.ignoreNotFound {
		g.sayNothingFound()
	}
	return err
}

func (g *get) sayNothingFound() {
	if g.all {
		fmt.Fprintln(g.streams.ErrOut, "No resources found")
		return
	}
	fmt.Fprintf(g.streams.ErrOut, "No resources found in %s namespace.\n", g.namespace)
}

// sections puts the pages of one kind together.
func (g *get) sections(infos []*resource.Info) (all []section, err error) {
	index := map[schema.GroupKind]int{}
	for _, info := range infos {
		table, err := decodeTable(info.Object)
		if err != nil {
			return nil, err
		}
		kind := info.Mapping.GroupVersionKind.GroupKind()
		i, known := index[kind]
		if !known {
			index[kind] = len(all)
			all = append(all, section{kind: kind, table: table})
			continue
		}
		all[i].table.Rows = append(all[i].table.Rows, table.Rows...)
	}
	if g.sortBy == "" {
		return all, nil
	}
	for _, s := range all {
		if err := sorted(g.sortBy, s.table.Rows, func(r metav1.TableRow) runtime.Object { return r.Object.Object }); err != nil {
			return nil, err
		}
	}
	return all, nil
}
