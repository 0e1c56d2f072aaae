package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
)

// none stands for a value that an object does not have.
const none = "<none>"

// parsePath parses a JSONPath that may lack its braces and its first dot: metadata.name and {.metadata.name}
// are the same.
func parsePath(path string) (*jsonpath.JSONPath, error) {
	inner := strings.TrimSpace(path)
	if strings.HasPrefix(inner, "{") && strings.HasSuffix(inner, "}") {
		inner = inner[1 : len(inner)-1]
	}
	if !strings.HasPrefix(inner, ".") && !strings.HasPrefix(inner, "[") && !strings.HasPrefix(inner, "$") && !strings.HasPrefix(inner, "@") {
		inner = "." + inner
	}
	p := jsonpath.New("path").AllowMissingKeys(true)
	if err := p.Parse("{" + inner + "}"); err != nil {
		return nil, fmt.Errorf("the path %q is not a JSONPath: %w", path, err)
	}
	return p, nil
}

// values returns what a path finds in an object.
func values(p *jsonpath.JSONPath, obj runtime.Object) (found []any, err error) {
	var in any = obj
	if u, ok := obj.(runtime.Unstructured); ok {
		in = u.UnstructuredContent()
	}
	sets, err := p.FindResults(in)
	if err != nil {
		return nil, err
	}
	for _, set := range sets {
		for _, v := range set {
			if v.IsValid() && v.CanInterface() && v.Interface() != nil {
				found = append(found, v.Interface())
			}
		}
	}
	return found, nil
}

// columns prints chosen fields of objects.
type columns struct {
	headers   []string
	paths     []*jsonpath.JSONPath
	noHeaders bool
}

// newColumns parses HEADER:PATH,HEADER:PATH.
func newColumns(spec string, noHeaders bool) (*columns, error) {
	if spec == "" {
		return nil, fmt.Errorf("say which columns, for instance %s=NAME:.metadata.name,TOOL:.spec.tool", customColumns)
	}
	c := &columns{noHeaders: noHeaders}
	for column := range strings.SplitSeq(spec, ",") {
		header, path, ok := strings.Cut(column, ":")
		if !ok || header == "" || path == "" {
			return nil, fmt.Errorf("the column %q is not of the form HEADER:PATH", column)
		}
		p, err := parsePath(path)
		if err != nil {
			return nil, err
		}
		c.headers, c.paths = append(c.headers, header), append(c.paths, p)
	}
	return c, nil
}

// PrintObj prints one row for an object, or one for each item of a list. Headers come once.
func (c *columns) PrintObj(obj runtime.Object, out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	if !c.noHeaders {
		fmt.Fprintln(w, strings.Join(c.headers, "\t"))
		c.noHeaders = true
	}
	print := func(o runtime.Object) error {
		row := make([]string, 0, len(c.paths))
		for _, p := range c.paths {
			cell, err := c.cell(p, o)
			if err != nil {
				return err
			}
			row = append(row, cell)
		}
		_, err := fmt.Fprintln(w, strings.Join(row, "\t"))
		return err
	}
	var err error
	if meta.IsListType(obj) {
		err = meta.EachListItem(obj, print)
	} else {
		err = print(obj)
	}
	if err != nil {
		return err
	}
	return w.Flush()
}

func (c *columns) cell(p *jsonpath.JSONPath, obj runtime.Object) (string, error) {
	found, err := values(p, obj)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return none, nil
	}
	texts := make([]string, len(found))
	for i, v := range found {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, ","), nil
}

// sorted sorts by the field at a path; what has none comes first.
func sorted[T any](path string, all []T, object func(T) runtime.Object) error {
	p, err := parsePath(path)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b T) int {
		x, xerr := values(p, object(a))
		y, yerr := values(p, object(b))
		err = cmp.Or(err, xerr, yerr)
		if len(x) == 0 || len(y) == 0 {
			return cmp.Compare(len(x), len(y))
		}
		return compareValues(x[0], y[0])
	})
	return err
}

// compareValues compares numbers as numbers and all else as text, which is right for names and times.
func compareValues(a, b any) int {
	x, xok := number(a)
	y, yok := number(b)
	if xok && yok {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// asUnstructured is an object as the printers want it.
func asUnstructured(obj runtime.Object) *unstructured.Unstructured {
	u, _ := obj.(*unstructured.Unstructured)
	return u
}
