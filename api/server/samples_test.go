package server

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// TestSamples applies the sample of each kind as a user would, with unknown fields refused.
func TestSamples(t *testing.T) {
	e := newEnv(t)
	strict := serializer.NewCodecFactory(e.Scheme, serializer.EnableStrict).UniversalDeserializer()
	d := e.dynamic(t)
	for _, gvk := range kinds(t, e) {
		b, err := os.ReadFile(filepath.Join("../../config/samples", "rigbridge_v1alpha1_"+strings.ToLower(gvk)+".yaml"))
		if err != nil {
			t.Error(err)
			continue
		}
		typed, got, err := strict.Decode(b, nil, nil)
		if err != nil || got.Kind != gvk || got.GroupVersion() != v1alpha1.GroupVersion {
			t.Errorf("the sample of %s decodes into %v: %v", gvk, got, err)
			continue
		}
		var u unstructured.Unstructured
		if err := yaml.UnmarshalStrict(b, &u.Object); err != nil {
			t.Errorf("%s: %v", gvk, err)
			continue
		}
		mapping, err := e.Mapper.RESTMapping(got.GroupKind(), got.Version)
		if err != nil {
			t.Fatal(err)
		}
		r := d.Resource(mapping.Resource).Namespace(v1alpha1.Namespace)
		if _, err := r.Apply(t.Context(), u.GetName(), &u, metav1.ApplyOptions{FieldManager: "sample"}); err != nil {
			t.Errorf("%s: %v", gvk, err)
			continue
		}
		stored := reflect.New(reflect.TypeOf(typed).Elem()).Interface().(client.Object)
		if err := e.Client.Get(t.Context(), Key(u.GetName()), stored); err != nil {
			t.Errorf("%s: %v", gvk, err)
		}
		if !reflect.DeepEqual(spec(stored), spec(typed)) {
			t.Errorf("the sample of %s relies on defaults: given %+v, stored %+v", gvk, spec(typed), spec(stored))
		}
	}
}

func spec(o any) any { return reflect.ValueOf(o).Elem().FieldByName("Spec").Interface() }

// kinds are our served kinds without their lists.
func kinds(t *testing.T, e *env) (names []string) {
	t.Helper()
	for gvk := range e.Client.byKind {
		if gvk.Group == v1alpha1.GroupName && !strings.HasSuffix(gvk.Kind, "List") {
			names = append(names, gvk.Kind)
		}
	}
	if slices.Sort(names); len(names) < 7 {
		t.Fatalf("only %v are served", names)
	}
	return names
}

// TestProjectFile holds PROJECT to what is served.
func TestProjectFile(t *testing.T) {
	b, err := os.ReadFile("../../PROJECT")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Domain, Repo string
		Layout       []string
		Resources    []struct {
			API                                struct{ Namespaced bool }
			Domain, Group, Kind, Path, Version string
		}
	}
	if err := yaml.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	own := reflect.TypeFor[v1alpha1.Project]().PkgPath()
	if file.Repo+"/api/v1alpha1" != own || !slices.Equal(file.Layout, []string{"go.kubebuilder.io/v4"}) {
		t.Errorf("repo %s, layout %v", file.Repo, file.Layout)
	}
	var names []string
	for _, r := range file.Resources {
		names = append(names, r.Kind)
		if r.Group+"."+r.Domain != v1alpha1.GroupName || r.Domain != file.Domain || r.Version != v1alpha1.GroupVersion.Version || r.Path != own || !r.API.Namespaced {
			t.Errorf("%+v", r)
		}
	}
	if slices.Sort(names); !slices.Equal(names, kinds(t, newEnv(t))) {
		t.Errorf("PROJECT has %v", names)
	}
}
