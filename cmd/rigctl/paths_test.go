package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func object(name string, status map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name, "generation": int64(2)}, "status": status,
	}}
}

func TestPathsMayLackBracesAndDots(t *testing.T) {
	o := object("a", map[string]any{"exitCode": int64(3), "list": []any{"x", "y"}, "null": nil})
	for path, want := range map[string]string{
		"metadata.name": "a", ".metadata.name": "a", "{.metadata.name}": "a", " {metadata.name} ": "a", "{$.metadata.name}": "a",
		".status.exitCode": "3", ".status.list[*]": "x,y", ".status.list[1]": "y", ".status.missing": none, ".status.null": none, ".spec.deep.missing": none,
	} {
		p, err := parsePath(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got, err := (&columns{}).cell(p, o); err != nil || got != want {
			t.Errorf("%s finds %q, %v; want %q", path, got, err, want)
		}
	}
	for _, path := range []string{"{.a", ".a["} {
		if _, err := parsePath(path); err == nil {
			t.Errorf("%s was parsed", path)
		}
	}
}

func TestColumns(t *testing.T) {
	c, err := newColumns("NAME:.metadata.name,EXIT:status.exitCode", false)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	first := object("a", map[string]any{"exitCode": int64(3)})
	list := asList([]runtime.Object{object("b", nil), first})
	for _, o := range []runtime.Object{first, list} { // as a watch would print them
		if err := c.PrintObj(o, &out); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := strings.Join(strings.Fields(out.String()), " "), "NAME EXIT a 3 b <none> a 3"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	for _, spec := range []string{"", "NAME", "NAME:", ":.metadata.name", "A:.a,"} {
		if _, err := newColumns(spec, false); err == nil {
			t.Errorf("the columns %q were parsed", spec)
		}
	}
}

func TestSorted(t *testing.T) {
	all := []runtime.Object{
		object("ten", map[string]any{"n": int64(10)}), object("none", nil), object("nine", map[string]any{"n": int64(9)}), object("half", map[string]any{"n": 9.5}),
	}
	names := func() string {
		var s []string
		for _, o := range all {
			s = append(s, asUnstructured(o).GetName())
		}
		return strings.Join(s, " ")
	}
	same := func(o runtime.Object) runtime.Object { return o }
	if err := sorted(".status.n", all, same); err != nil || names() != "none nine half ten" {
		t.Errorf("by number: %s, %v", names(), err)
	}
	if err := sorted("{.metadata.name}", all, same); err != nil || names() != "half nine none ten" {
		t.Errorf("by name: %s, %v", names(), err)
	}
	if err := sorted(".a[", all, same); err == nil {
		t.Error("sorted by what is no path")
	}
}

func TestGoals(t *testing.T) {
	conditions := func(status string, generation int64) map[string]any {
		return map[string]any{"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": status, "observedGeneration": generation}}}
	}
	for _, c := range []struct {
		goal string
		o    *unstructured.Unstructured
		want bool
	}{
		{"condition=Ready", object("a", conditions("True", 2)), true},
		{"condition=ready=true", object("a", conditions("True", 2)), true},
		{"condition=Ready", object("a", conditions("False", 2)), false},
		{"condition=Ready=False", object("a", conditions("False", 2)), true},
		{"condition=Ready", object("a", conditions("True", 1)), false}, // it describes an earlier intent
		{"condition=Other", object("a", conditions("True", 2)), false},
		{"condition=Ready", object("a", nil), false},
		{"jsonpath={.status.phase}=Running", object("a", conditions("True", 2)), true},
		{"jsonpath=.status.phase=Running", object("a", conditions("True", 2)), true},
		{"jsonpath={.status.phase}=Over", object("a", conditions("True", 2)), false},
		{"jsonpath={.status.phase}", object("a", conditions("True", 2)), true},
		{"jsonpath={.status.other}", object("a", conditions("True", 2)), false},
		{`jsonpath={.status.conditions[?(@.type=="Ready")].status}=True`, object("a", conditions("True", 2)), true},
		{"delete", nil, true}, {"delete", object("a", nil), false}, {"create", nil, false}, {"create", object("a", nil), true},
	} {
		make, _, err := parseGoal(c.goal)
		if err != nil {
			t.Errorf("%s: %v", c.goal, err)
			continue
		}
		if got, err := make(object("a", nil))(c.o); err != nil || got != c.want {
			t.Errorf("%s: %v, %v; want %v", c.goal, got, err, c.want)
		}
	}
	for _, goal := range []string{"", "condition", "condition=", "ready", "jsonpath={.a"} {
		if _, _, err := parseGoal(goal); err == nil {
			t.Errorf("--for=%s was understood", goal)
		}
	}
}

// Another object of the same name is not the one that was to go.
func TestGoneIsByUID(t *testing.T) {
	before, after := object("a", nil), object("a", nil)
	before.SetUID("1")
	after.SetUID("2")
	for o, want := range map[*unstructured.Unstructured]bool{before: false, after: true, nil: true} {
		if got, err := isGone(before)(o); err != nil || got != want {
			t.Errorf("%v: %v, %v", o, got, err)
		}
	}
}

func TestAges(t *testing.T) {
	for text, want := range map[string]time.Duration{"0s": 0, "90d": 90 * 24 * time.Hour, "12h": 12 * time.Hour, "1h30m": 90 * time.Minute} {
		if got, err := parseAge(text); err != nil || got != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "-1d", "-5h", "1.5d", "soon", "99999999d"} {
		if got, err := parseAge(text); err == nil {
			t.Errorf("%s is %v", text, got)
		}
	}
}

func TestSentences(t *testing.T) {
	kind := schema.GroupKind{Group: "rigbridge.dev", Kind: "Project"}
	invalid := errors.NewInvalid(kind, "demo", field.ErrorList{field.Required(field.NewPath("spec", "root"), "give one"), field.Invalid(field.NewPath("spec", "identity"), "x", "no")})
	missing := errors.NewNotFound(schema.GroupResource{Group: "rigbridge.dev", Resource: "projects"}, "demo")
	var out bytes.Buffer
	report(&out, utilerrors.NewAggregate([]error{invalid, missing, &notRunningError{dir: "/s", given: true}}))
	want := `The Project "demo" is invalid:
* spec.root: Required value: give one
* spec.identity: Invalid value: "x": no
Error from server (NotFound): projects.rigbridge.dev "demo" not found
rigctl: no rig-bridge runs on /s; start it with: rig-bridge serve --state-dir /s
`
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}
