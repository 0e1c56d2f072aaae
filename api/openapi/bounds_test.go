package openapi

import (
	"slices"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// TestBounds: which values a field may have is told for fields of kinds, of what they hold, and of lists.
func TestBounds(t *testing.T) {
	all := Definitions(func(name string) spec.Ref { return spec.MustCreateRef("#/components/schemas/" + name) })
	at := func(model string, field string) spec.Schema {
		s, ok := all[ownModels+model].Schema.Properties[field]
		if !ok {
			t.Fatalf("%s has no %s", model, field)
		}
		return s
	}
	if tools := at("OperationSpec", "tool"); !slices.Contains(tools.Enum, any("bash")) || len(tools.Enum) != 11 {
		t.Errorf("tools: %v", tools.Enum)
	}
	if s := at("OperationSpec", "timeoutSeconds"); s.Minimum == nil || *s.Minimum != 1 || s.Maximum == nil || *s.Maximum != 3600 {
		t.Errorf("timeout: %+v", s.SchemaProps)
	}
	if s := at("OperationSpec", "paths"); s.MaxItems == nil || *s.MaxItems != 16 || s.Items.Schema.MaxLength == nil || *s.Items.Schema.MaxLength != 4096 {
		t.Errorf("paths: %+v", s.SchemaProps)
	}
	if s := at("OperationSpec", "argumentsDigest"); s.Pattern == "" {
		t.Errorf("digest: %+v", s.SchemaProps)
	}
	if s := at("OperationAttempt", "id"); s.MaxLength == nil || *s.MaxLength != 36 {
		t.Errorf("a model within a model: %+v", s.SchemaProps)
	}
	if s := at("LocalReference", "name"); s.MinLength == nil || *s.MinLength != 1 {
		t.Errorf("a shared model: %+v", s.SchemaProps)
	}
}
