package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

func explainCommand(conn *connection) *cobra.Command {
	var recursive bool
	c := &cobra.Command{
		Use:     "explain TYPE[.FIELD...]",
		Short:   "Tell what a type or a field means",
		Example: "  rigctl explain operation.spec.cancel\n  rigctl explain ws --recursive",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := conn.reachable(c.Context()); err != nil {
				return err
			}
			return conn.explain(c.Context(), args[0], recursive)
		},
	}
	c.Flags().BoolVar(&recursive, "recursive", false, "all fields below, without descriptions")
	return c
}

// schemas are those of the served OpenAPI document, by name.
type schemas map[string]*spec.Schema

func (c *connection) explain(ctx context.Context, what string, recursive bool) error {
	parts := strings.Split(what, ".")
	mapping, err := c.mappingFor(parts[0])
	if err != nil {
		return err
	}
	gvk := mapping.GroupVersionKind
	all, err := c.schemas(ctx, gvk.GroupVersion())
	if err != nil {
		return err
	}
	s := all.ofKind(gvk)
	if s == nil {
		return fmt.Errorf("the server does not describe %s", gvk.Kind)
	}
	w := bufio.NewWriter(c.streams.Out)
	fmt.Fprintf(w, "GROUP:      %s\nKIND:       %s\nVERSION:    %s\n\n", gvk.Group, gvk.Kind, gvk.Version)
	if s, err = all.walk(w, s, parts[1:]); err != nil {
		return err
	}
	fmt.Fprint(w, "DESCRIPTION:\n")
	indented(w, "    ", s.Description)
	if len(s.Properties) > 0 {
		fmt.Fprint(w, "\nFIELDS:\n")
		all.fields(w, s, "  ", recursive, 0)
	}
	return w.Flush()
}

func (c *connection) schemas(ctx context.Context, gv schema.GroupVersion) (schemas, error) {
	client, err := c.client(gv)
	if err != nil {
		return nil, err
	}
	b, err := client.Get().AbsPath("/openapi/v3/apis/" + gv.String()).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("read the description of %s: %w", gv, err)
	}
	var doc spec3.OpenAPI
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("understand the description of %s: %w", gv, err)
	}
	if doc.Components == nil {
		return nil, fmt.Errorf("the server describes no types of %s", gv)
	}
	return doc.Components.Schemas, nil
}

func (all schemas) ofKind(gvk schema.GroupVersionKind) *spec.Schema {
	for _, s := range all {
		var kinds []schema.GroupVersionKind
		if s.Extensions.GetObject("x-kubernetes-group-version-kind", &kinds) == nil && slices.Contains(kinds, gvk) {
			return s
		}
	}
	return nil
}

// walk goes from a type to one of its fields and tells the type of the last.
func (all schemas) walk(w io.Writer, s *spec.Schema, fields []string) (*spec.Schema, error) {
	for i, name := range fields {
		f, ok := s.Properties[name]
		if !ok {
			return nil, fmt.Errorf("field %q does not exist", strings.Join(fields[:i+1], "."))
		}
		next := all.resolve(&f)
		if i == len(fields)-1 {
			fmt.Fprintf(w, "FIELD: %s <%s>\n\n", name, all.typeName(&f))
			if len(f.Enum) > 0 {
				fmt.Fprint(w, "ENUM:\n")
				for _, e := range f.Enum {
					fmt.Fprintf(w, "    %v\n", e)
				}
				fmt.Fprintln(w)
			}
			if b := bounds(&f); b != "" {
				fmt.Fprintf(w, "VALUES:\n    %s\n\n", b)
			}
		}
		if description := f.Description; description != "" {
			copied := *next
			copied.Description = description // of the field, which says more than that of its type
			next = &copied
		}
		s = next
	}
	return s, nil
}

// resolve follows references and goes into lists and maps, to where fields are.
func (all schemas) resolve(s *spec.Schema) *spec.Schema {
	for range 10 {
		switch {
		case s.Ref.String() != "":
			target, ok := all[path.Base(s.Ref.String())]
			if !ok {
				return s
			}
			s = target
		case len(s.AllOf) == 1:
			s = &s.AllOf[0]
		case s.Items != nil && s.Items.Schema != nil:
			s = s.Items.Schema
		case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
			s = s.AdditionalProperties.Schema
		default:
			return s
		}
	}
	return s
}

// typeName is what people call a type: string, []Condition, map[string]string.
func (all schemas) typeName(s *spec.Schema) string {
	switch {
	case s.Ref.String() != "":
		base := path.Base(s.Ref.String())
		if target, ok := all[base]; ok && len(target.Properties) == 0 && len(target.Type) > 0 {
			return all.typeName(target)
		}
		return base[strings.LastIndex(base, ".")+1:]
	case len(s.AllOf) == 1:
		return all.typeName(&s.AllOf[0])
	case s.Items != nil && s.Items.Schema != nil:
		return "[]" + all.typeName(s.Items.Schema)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map[string]" + all.typeName(s.AdditionalProperties.Schema)
	case len(s.Type) > 0:
		return s.Type[0]
	}
	return "Object"
}

// deepest bounds how far --recursive goes; types that hold themselves would not end.
const deepest = 10

func (all schemas) fields(w io.Writer, s *spec.Schema, indent string, recursive bool, depth int) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		f := s.Properties[name]
		required := ""
		if slices.Contains(s.Required, name) {
			required = " -required-"
		}
		fmt.Fprintf(w, "%s%s\t<%s>%s\n", indent, name, all.typeName(&f), required)
		if recursive {
			if below := all.resolve(&f); depth < deepest {
				all.fields(w, below, indent+"  ", true, depth+1)
			}
			continue
		}
		if len(f.Enum) > 0 {
			fmt.Fprintf(w, "%s  enum: %s\n", indent, join(f.Enum))
		}
		if b := bounds(&f); b != "" {
			fmt.Fprintf(w, "%s  values: %s\n", indent, b)
		}
		indented(w, indent+"  ", f.Description)
		fmt.Fprintln(w)
	}
}

// bounds says which values a field may have, beside an enumeration.
func bounds(s *spec.Schema) string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		add("%v to %v", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		add("at least %v", *s.Minimum)
	case s.Maximum != nil:
		add("at most %v", *s.Maximum)
	}
	if s.MinLength != nil {
		add("at least %d characters", *s.MinLength)
	}
	if s.MaxLength != nil {
		add("at most %d characters", *s.MaxLength)
	}
	if s.MinItems != nil {
		add("at least %d items", *s.MinItems)
	}
	if s.MaxItems != nil {
		add("at most %d items", *s.MaxItems)
	}
	if s.Pattern != "" {
		add("matches %s", s.Pattern)
	}
	if s.Items != nil && s.Items.Schema != nil {
		if b := bounds(s.Items.Schema); b != "" {
			add("each %s", b)
		}
		if e := s.Items.Schema.Enum; len(e) > 0 {
			add("each one of %s", join(e))
		}
	}
	return strings.Join(all, ", ")
}

func join(values []any) string {
	var all []string
	for _, v := range values {
		all = append(all, fmt.Sprint(v))
	}
	return strings.Join(all, ", ")
}

// textWidth is where lines of descriptions are broken, in characters.
const textWidth = 90

// indented prints a text with its own lines and breaks those that are too long between words.
func indented(w io.Writer, indent, text string) {
	if text == "" {
		text = none
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		var out strings.Builder
		for _, word := range strings.Fields(line) {
			if out.Len() > 0 && out.Len()+1+len(word) > textWidth {
				fmt.Fprintf(w, "%s%s\n", indent, &out)
				out.Reset()
			}
			if out.Len() > 0 {
				out.WriteByte(' ')
			}
			out.WriteString(word)
		}
		if out.Len() > 0 {
			out.WriteByte('\n')
			fmt.Fprint(w, indent, &out)
		} else {
			fmt.Fprintln(w)
		}
	}
}
