package v1alpha1

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rigbridge/rigbridge/config/crd"
)

// definitions pairs each kind's generated definition with what we check ourselves.
var definitions = []struct {
	plural   string
	valid    func() runtime.Object
	validate func(map[string]any) (field.ErrorList, error)
}{
	{"projects", func() runtime.Object { return aProject() }, checked(ValidateProject)},
	{"threads", func() runtime.Object { return aThread() }, checked(ValidateThread)},
	{"workspaces", func() runtime.Object { return aWorkspace() }, checked(ValidateWorkspace)},
	{"operations", func() runtime.Object { return anOperation() }, checked(ValidateOperation)},
	{"operations", func() runtime.Object { return aRead() }, checked(ValidateOperation)},
	{"runs", func() runtime.Object { return aRun() }, checked(ValidateRun)},
	{"handoffs", func() runtime.Object { return aHandoff() }, checked(ValidateHandoff)},
	{"tunnels", func() runtime.Object { return aTunnel() }, checked(ValidateTunnel)},
}

func checked[T any](validate func(*T) field.ErrorList) func(map[string]any) (field.ErrorList, error) {
	return func(content map[string]any) (field.ErrorList, error) {
		o := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, o); err != nil {
			return nil, err
		}
		return validate(o), nil
	}
}

// A foreign Kubernetes API checks by the definitions, ours by the Go code: what one refuses, so does the other.
func TestDefinitionsAgreeWithValidation(t *testing.T) {
	for _, d := range definitions {
		def, err := crd.Load(d.plural)
		if err != nil {
			t.Fatal(err)
		}
		spec := def.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		walk(spec, []string{"spec"}, func(path []string, s apiextensionsv1.JSONSchemaProps) {
			for bound, value := range beyond(s) {
				content := content(t, d.valid())
				if err := set(content, value, path); err != nil {
					t.Fatal(err)
				}
				at := strings.Join(path, ".")
				errs, err := d.validate(content)
				if err != nil {
					t.Fatalf("%s %s: %v", d.plural, at, err)
				}
				if !slices.ContainsFunc(errs, func(e *field.Error) bool { return strings.HasPrefix(e.Field, at) }) {
					t.Errorf("%s: the definition bounds %s by %s, validation does not: %v", d.plural, at, bound, errs.ToAggregate())
				}
			}
		})
		checkRequired(t, d.plural, spec, []string{"spec"}, d.valid, d.validate)
	}
}

// walk visits all properties that hold a value.
func walk(s apiextensionsv1.JSONSchemaProps, path []string, visit func([]string, apiextensionsv1.JSONSchemaProps)) {
	visit(path, s)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		walk(s.Properties[name], append(slices.Clone(path), name), visit)
	}
}

// beyond returns values that lie just beyond each bound of a property.
func beyond(s apiextensionsv1.JSONSchemaProps) map[string]any {
	values := map[string]any{}
	if s.MaxLength != nil {
		values["maxLength"] = strings.Repeat("a", int(*s.MaxLength)+1)
	}
	if s.Minimum != nil && *s.Minimum > 1 { // 0 is what is not given
		values["minimum"] = int64(*s.Minimum) - 1
	}
	if s.Maximum != nil {
		values["maximum"] = int64(*s.Maximum) + 1
	}
	if len(s.Enum) > 0 {
		values["enum"] = "Nonsense"
	}
	if s.Pattern != "" {
		values["pattern"] = "no such thing"
	}
	if s.MaxItems != nil && s.Items != nil {
		items := make([]any, *s.MaxItems+1)
		for i := range items {
			items[i] = fmt.Sprintf("/%d", i)
		}
		values["maxItems"] = items
		if long := s.Items.Schema.MaxLength; long != nil {
			values["items.maxLength"] = []any{"/" + strings.Repeat("a", int(*long))}
		}
	}
	return values
}

func content(t *testing.T, o runtime.Object) map[string]any {
	t.Helper()
	c, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func set(content map[string]any, value any, path []string) error {
	return unstructured.SetNestedField(content, value, path...)
}

// checkRequired takes away each required property of the spec in turn.
func checkRequired(t *testing.T, plural string, s apiextensionsv1.JSONSchemaProps, path []string, valid func() runtime.Object, validate func(map[string]any) (field.ErrorList, error)) {
	t.Helper()
	for _, name := range s.Required {
		at := append(slices.Clone(path), name)
		c := content(t, valid())
		unstructured.RemoveNestedField(c, at...)
		if errs, err := validate(c); err != nil || len(errs) == 0 {
			t.Errorf("%s: the definition requires %s, validation does not (%v)", plural, strings.Join(at, "."), err)
		}
	}
	for name, p := range s.Properties {
		if slices.Contains(s.Required, name) {
			checkRequired(t, plural, p, append(slices.Clone(path), name), valid, validate)
		}
	}
}

// Every string and every list of spec and status is bounded, so an object always fits the store's size cap.
func TestEverythingIsBounded(t *testing.T) {
	for _, d := range definitions {
		def, err := crd.Load(d.plural)
		if err != nil {
			t.Fatal(err)
		}
		root := def.Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, part := range []string{"spec", "status"} {
			walk(root.Properties[part], []string{part}, func(path []string, s apiextensionsv1.JSONSchemaProps) {
				at := d.plural + " " + strings.Join(path, ".")
				if s.Type == "string" && s.MaxLength == nil && len(s.Enum) == 0 && s.Pattern == "" && s.Format == "" {
					t.Errorf("%s is a string without a bound", at)
				}
				if s.Type == "array" && s.MaxItems == nil && s.XListType != nil && *s.XListType != "map" {
					t.Errorf("%s is a list without a bound", at)
				}
			})
		}
	}
}
