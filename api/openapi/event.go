package openapi

import (
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Definitions returns the schemas of everything that is served.
func Definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := GetOpenAPIDefinitions(ref)
	bound(all)
	maps.Copy(all, eventDefinitions(ref))
	return all
}

// model is a type of Kubernetes' core API: it has a name and says what its fields are for.
type model interface {
	OpenAPIModelName() string
	SwaggerDoc() map[string]string
}

// eventDefinitions returns the schemas of events and of what they hold. The generator takes whole packages, and
// the package of events has a thousand types more, so these five are made from the types and their documentation.
func eventDefinitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := map[string]common.OpenAPIDefinition{}
	for _, m := range []model{corev1.Event{}, corev1.EventList{}, corev1.EventSeries{}, corev1.EventSource{}, corev1.ObjectReference{}} {
		all[m.OpenAPIModelName()] = define(m, ref)
	}
	return all
}

func define(m model, ref common.ReferenceCallback) common.OpenAPIDefinition {
	doc := m.SwaggerDoc()
	def := common.OpenAPIDefinition{Schema: spec.Schema{SchemaProps: spec.SchemaProps{
		Type: []string{"object"}, Description: doc[""], Properties: map[string]spec.Schema{},
	}}}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(m)) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inTypeMeta := len(f.Index) > 1 && reflect.TypeOf(m).Field(f.Index[0]).Type == reflect.TypeFor[metav1.TypeMeta]()
		if name == "" || len(f.Index) > 1 && !inTypeMeta {
			continue // inlined, or a field of what has a schema of its own
		}
		description := doc[name]
		if inTypeMeta {
			description = metav1.TypeMeta{}.SwaggerDoc()[name]
		}
		def.Schema.Properties[name] = property(f.Type, description, ref, &def.Dependencies)
		if f.Type.Kind() != reflect.String && !strings.Contains(options, "omitempty") {
			def.Schema.Required = append(def.Schema.Required, name)
		}
	}
	return def
}

// property returns the schema of a field and notes what it refers to.
func property(t reflect.Type, description string, ref common.ReferenceCallback, needs *[]string) spec.Schema {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := spec.Schema{SchemaProps: spec.SchemaProps{Description: description}}
	switch named, ok := reflect.Zero(t).Interface().(interface{ OpenAPIModelName() string }); {
	case ok:
		*needs = append(*needs, named.OpenAPIModelName())
		s.Ref = ref(named.OpenAPIModelName())
	case t.Kind() == reflect.Slice:
		item := property(t.Elem(), "", ref, needs)
		s.Type, s.Items = []string{"array"}, &spec.SchemaOrArray{Schema: &item}
	case t.Kind() == reflect.Int32:
		s.Type, s.Format = []string{"integer"}, "int32"
	default:
		s.Type = []string{"string"}
	}
	return s
}
