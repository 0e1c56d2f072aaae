package openapi

import (
	"encoding/json"
	"path"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/rigbridge/rigbridge/config/crd"
)

// ownModels is how the names of our models begin.
const ownModels = "dev.rigbridge.v1alpha1."

// declared are the schemas of our kinds as the CRDs have them.
var declared = sync.OnceValue(func() map[string]apiextensionsv1.JSONSchemaProps {
	all, err := crd.All()
	if err != nil {
		panic(err) // they are part of the program, and a test loads them
	}
	kinds := map[string]apiextensionsv1.JSONSchemaProps{}
	for _, one := range all {
		kinds[one.Spec.Names.Kind] = *one.Spec.Versions[0].Schema.OpenAPIV3Schema
	}
	return kinds
})

// bound adds to our models which values a field may have. Markers of the types say so, which the generator of models
// does not read; that of the CRDs does, so it is taken from there.
func bound(all map[string]common.OpenAPIDefinition) {
	for kind, from := range declared() {
		boundModel(all, ownModels+kind, from)
	}
}

func boundModel(all map[string]common.OpenAPIDefinition, name string, from apiextensionsv1.JSONSchemaProps) {
	model, ok := all[name]
	if !ok {
		return
	}
	for field, value := range model.Schema.Properties {
		f, ok := from.Properties[field]
		if !ok || field == "metadata" {
			continue
		}
		boundValue(all, &value, f)
		model.Schema.Properties[field] = value
	}
}

func boundValue(all map[string]common.OpenAPIDefinition, to *spec.Schema, from apiextensionsv1.JSONSchemaProps) {
	to.Minimum, to.Maximum, to.Pattern = from.Minimum, from.Maximum, from.Pattern
	to.MinLength, to.MaxLength, to.MinItems, to.MaxItems = from.MinLength, from.MaxLength, from.MinItems, from.MaxItems
	for _, e := range from.Enum {
		var value any
		if json.Unmarshal(e.Raw, &value) == nil {
			to.Enum = append(to.Enum, value)
		}
	}
	if to.Items != nil && to.Items.Schema != nil && from.Items != nil && from.Items.Schema != nil {
		boundValue(all, to.Items.Schema, *from.Items.Schema)
	}
	ref := to.Ref.String()
	for i := range to.AllOf {
		ref += to.AllOf[i].Ref.String()
	}
	if name := path.Base(ref); strings.HasPrefix(name, ownModels) {
		boundModel(all, name, from)
	}
}
