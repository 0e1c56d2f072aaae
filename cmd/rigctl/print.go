package main

import (
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
)

const customColumns = "custom-columns"

// output says how objects are printed.
type output struct {
	flags        *genericclioptions.PrintFlags
	noHeaders    bool
	showLabels   bool
	labelColumns []string
	sortBy       string
}

func newOutput(c *cobra.Command) *output {
	o := &output{flags: genericclioptions.NewPrintFlags("")}
	o.flags.AddFlags(c)
	c.Flag("output").Usage = "wide, json, yaml, kyaml, name, jsonpath=TEMPLATE, jsonpath-file=FILE, go-template=TEMPLATE, go-template-file=FILE, custom-columns=HEADER:PATH,..."
	c.Flags().BoolVar(&o.noHeaders, "no-headers", false, "print no column headers")
	c.Flags().BoolVar(&o.showLabels, "show-labels", false, "print labels as the last column")
	c.Flags().StringSliceVarP(&o.labelColumns, "label-columns", "L", nil, "labels to print as columns")
	c.Flags().StringVar(&o.sortBy, "sort-by", "", "JSONPath of the field to sort by, for instance .metadata.creationTimestamp")
	return o
}

func (o *output) format() string { return *o.flags.OutputFormat }

// table says whether the server renders the objects.
func (o *output) table() bool {
	template := o.flags.TemplatePrinterFlags.TemplateArgument
	return (o.format() == "" && (template == nil || *template == "")) || o.format() == "wide"
}

// printer returns the printer of whole objects.
func (o *output) printer() (printers.ResourcePrinter, error) {
	name, spec, _ := strings.Cut(o.format(), "=")
	if name == customColumns {
		return newColumns(spec, o.noHeaders)
	}
	p, err := o.flags.ToPrinter()
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return nil, fmt.Errorf("output format %q is not known; use %s, wide or %s=", o.format(), strings.Join(o.flags.AllowedFormats(), ", "), customColumns)
	}
	return p, err
}

// tablePrinter returns the printer of what the server rendered.
func (o *output) tablePrinter(kind schema.GroupKind, withKind, withNamespace bool) printers.ResourcePrinter {
	return printers.NewTablePrinter(printers.PrintOptions{
		NoHeaders: o.noHeaders, Wide: o.format() == "wide", ShowLabels: o.showLabels, ColumnLabels: o.labelColumns,
		WithNamespace: withNamespace, WithKind: withKind, Kind: kind,
	})
}

// asTables asks the server to render objects.
func (o *output) asTables(r *rest.Request) {
	gv := metav1.SchemeGroupVersion
	r.SetHeader("Accept", fmt.Sprintf("application/json;as=Table;v=%s;g=%s,application/json", gv.Version, gv.Group))
	if o.sortBy != "" {
		r.Param("includeObject", string(metav1.IncludeObject))
	}
}

// decodeTable takes what the server rendered. Rows are taken over as they are: a general conversion would encode and
// decode the object of each once more, which is most of the work for some thousand rows.
func decodeTable(obj runtime.Object) (*metav1.Table, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || u.GetKind() != "Table" {
		return nil, fmt.Errorf("the server sent %T where a table was asked for", obj)
	}
	head := maps.Clone(u.Object)
	delete(head, "rows")
	table := &metav1.Table{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(head, table); err != nil {
		return nil, fmt.Errorf("decode a table: %w", err)
	}
	rows, _ := u.Object["rows"].([]any)
	for _, r := range rows {
		row, _ := r.(map[string]any)
		cells, ok := row["cells"].([]any)
		if !ok {
			return nil, fmt.Errorf("decode a table: a row is %T and has no cells", r)
		}
		of := metav1.TableRow{Cells: cells}
		if o, ok := row["object"].(map[string]any); ok {
			of.Object.Object = &unstructured.Unstructured{Object: o}
		}
		table.Rows = append(table.Rows, of)
	}
	return table, nil
}
