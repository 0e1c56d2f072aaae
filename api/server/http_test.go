package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/storage"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// fetch reads a path of the API.
func (e *env) fetch(t *testing.T, path, accept string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v: %s", path, resp.Status, err, b)
	}
	return b
}

func TestDiscovery(t *testing.T) {
	e := newEnv(t)
	d, err := discovery.NewDiscoveryClientForConfig(e.config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := d.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	short := map[string]string{"operations": "op", "workspaces": "ws", "projects": "proj"}
	seen := map[string]bool{}
	for _, r := range list.APIResources {
		seen[r.Name] = true
		if strings.Contains(r.Name, "/") {
			continue
		}
		if !r.Namespaced || !slices.Contains(r.Categories, "rig") {
			t.Errorf("%s: namespaced %v, categories %v", r.Name, r.Namespaced, r.Categories)
		}
		if want := short[r.Name]; want != "" && !slices.Contains(r.ShortNames, want) {
			t.Errorf("%s: short names %v", r.Name, r.ShortNames)
		}
		for _, verb := range []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"} {
			if !slices.Contains(r.Verbs, verb) {
				t.Errorf("%s cannot be asked to %s", r.Name, verb)
			}
		}
	}
	for _, name := range []string{"projects", "threads", "workspaces", "operations", "runs", "handoffs", "tunnels"} {
		if !seen[name] || !seen[name+"/status"] {
			t.Errorf("%s or its status is not served", name)
		}
	}
	version, err := d.ServerVersion()
	if err != nil || !strings.HasSuffix(version.GitVersion, "+rig-bridge.1.2.3") {
		t.Errorf("version %+v, %v", version, err)
	}
}

func TestOpenAPI(t *testing.T) {
	e := newEnv(t)
	var v2 struct {
		Definitions map[string]any `json:"definitions"`
	}
	var v3 struct {
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	for path, into := range map[string]any{"/openapi/v2": &v2, "/openapi/v3/apis/" + v1alpha1.GroupVersion.String(): &v3} {
		if err := json.Unmarshal(e.fetch(t, path, "application/json"), into); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, kind := range []string{"Project", "Thread", "Workspace", "Operation", "Run", "Handoff", "Tunnel"} {
		name := "dev.rigbridge.v1alpha1." + kind
		if v2.Definitions[name] == nil || v3.Components.Schemas[name] == nil {
			t.Errorf("%s: in v2 %v, in v3 %v", name, v2.Definitions[name] != nil, v3.Components.Schemas[name] != nil)
		}
	}
}

// Columns exist once, in the definitions of the kinds, and the server renders them.
func TestTables(t *testing.T) {
	e := newEnv(t)
	o := newOperation("ws", "key", v1alpha1.ToolBash)
	create(t, e.Client, o)
	finish(t, e.Client, o)
	const accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
	var table metav1.Table
	path := "/apis/" + v1alpha1.GroupVersion.String() + "/namespaces/default/operations"
	if err := json.Unmarshal(e.fetch(t, path, accept), &table); err != nil {
		t.Fatal(err)
	}
	var columns, wide []string
	for _, c := range table.ColumnDefinitions {
		if c.Priority == 0 {
			columns = append(columns, c.Name)
		} else {
			wide = append(wide, c.Name)
		}
	}
	if want := []string{"Name", "Workspace", "Tool", "Succeeded", "Reason", "Age"}; !slices.Equal(columns, want) {
		t.Errorf("columns %v, want %v", columns, want)
	}
	if want := []string{"Phase", "Attempts", "Exit"}; !slices.Equal(wide, want) {
		t.Errorf("wide columns %v, want %v", wide, want)
	}
	if len(table.Rows) != 1 || table.ResourceVersion == "" {
		t.Fatalf("%d rows at %q", len(table.Rows), table.ResourceVersion)
	}
	if got, want := table.Rows[0].Cells[:5], []any{o.Name, "ws", "bash", "True", "Succeeded"}; !slices.Equal(got, want) {
		t.Errorf("cells %v, want %v", got, want)
	}
}

func TestUnknownFieldSelector(t *testing.T) {
	c := newEnv(t).remote(t)
	err := c.List(t.Context(), &v1alpha1.OperationList{}, client.InNamespace(v1alpha1.Namespace), client.MatchingFields{"spec.nonsense": "x"})
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "spec.nonsense") {
		t.Errorf("a selector of an unknown field: %v", err)
	}
}

func TestStrictFieldValidation(t *testing.T) {
	e := newEnv(t)
	d := e.dynamic(t).Resource(v1alpha1.GroupVersion.WithResource("projects")).Namespace(v1alpha1.Namespace)
	p := project("strict", map[string]any{"root": "/srv/demo", "identity": "directory:/srv/demo", "colour": "red"})
	if _, err := d.Create(t.Context(), p, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "spec.colour") {
		t.Errorf("an unknown field: %v", err)
	}
}

func (e *env) dynamic(t *testing.T) dynamic.Interface {
	t.Helper()
	d, err := dynamic.NewForConfig(e.config)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func project(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Project",
		"metadata": map[string]any{"name": name, "namespace": v1alpha1.Namespace}, "spec": spec,
	}}
}

func TestServerSideApply(t *testing.T) {
	e := newEnv(t)
	d := e.dynamic(t).Resource(v1alpha1.GroupVersion.WithResource("projects")).Namespace(v1alpha1.Namespace)
	full := map[string]any{"root": "/srv/demo", "identity": "directory:/srv/demo", "displayName": "Demo"}
	got, err := d.Apply(t.Context(), "applied", project("applied", full), metav1.ApplyOptions{FieldManager: "first"})
	if err != nil {
		t.Fatal(err)
	}
	if m := got.GetManagedFields(); len(m) != 1 || m[0].Manager != "first" || m[0].Operation != metav1.ManagedFieldsOperationApply {
		t.Errorf("managed fields %+v", m)
	}
	same, err := d.Apply(t.Context(), "applied", project("applied", full), metav1.ApplyOptions{FieldManager: "first"})
	if err != nil || same.GetResourceVersion() != got.GetResourceVersion() {
		t.Errorf("applying the same again changed it from %s to %s: %v", got.GetResourceVersion(), same.GetResourceVersion(), err)
	}
	mine := project("applied", map[string]any{"root": "/srv/demo", "identity": "directory:/srv/demo", "displayName": "Mine"})
	_, err = d.Apply(t.Context(), "applied", mine, metav1.ApplyOptions{FieldManager: "second"})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), ".spec.displayName") {
		t.Errorf("a field that another owns: %v", err)
	}
	if got, err = d.Apply(t.Context(), "applied", mine, metav1.ApplyOptions{FieldManager: "second", Force: true}); err != nil {
		t.Fatal(err)
	}
	if name, _, _ := unstructured.NestedString(got.Object, "spec", "displayName"); name != "Mine" {
		t.Errorf("forced, the name is %q", name)
	}
	// The first owner lets the rest go: what nobody else owns would vanish, what the second owns stays.
	if got, err = d.Apply(t.Context(), "applied", project("applied", map[string]any{"root": "/srv/demo", "identity": "directory:/srv/demo"}), metav1.ApplyOptions{FieldManager: "first"}); err != nil {
		t.Fatal(err)
	}
	if name, _, _ := unstructured.NestedString(got.Object, "spec", "displayName"); name != "Mine" {
		t.Errorf("after the first owner let go, the name is %q", name)
	}
}

func TestApplyStatus(t *testing.T) {
	e := newEnv(t)
	create(t, e.Client, newProject("applied"))
	d := e.dynamic(t).Resource(v1alpha1.GroupVersion.WithResource("projects")).Namespace(v1alpha1.Namespace)
	p := project("applied", nil)
	delete(p.Object, "spec")
	p.Object["status"] = map[string]any{"threads": int64(7)}
	if _, err := d.ApplyStatus(t.Context(), "applied", p, metav1.ApplyOptions{FieldManager: "counter"}); err != nil {
		t.Fatal(err)
	}
	var got v1alpha1.Project
	if err := e.Client.Get(t.Context(), Key("applied"), &got); err != nil || got.Status.Threads != 7 {
		t.Errorf("status %+v, %v", got.Status, err)
	}
}

func TestNoPatchTypeIsMisread(t *testing.T) {
	e := newEnv(t)
	create(t, e.Client, newProject("patched"))
	d := e.dynamic(t).Resource(v1alpha1.GroupVersion.WithResource("projects")).Namespace(v1alpha1.Namespace)
	for kind, patch := range map[types.PatchType]string{
		types.MergePatchType:          `{"spec":{"displayName":"merged"}}`,
		types.StrategicMergePatchType: `{"spec":{"displayName":"strategic"}}`,
		types.JSONPatchType:           `[{"op":"replace","path":"/spec/displayName","value":"json"}]`,
	} {
		got, err := d.Patch(t.Context(), "patched", kind, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if name, _, _ := unstructured.NestedString(got.Object, "spec", "displayName"); !strings.Contains(patch, name) {
			t.Errorf("%s gave %q", kind, name)
		}
	}
	if _, err := d.Patch(t.Context(), "patched", types.MergePatchType, []byte(`{"spec":`), metav1.PatchOptions{}); !apierrors.IsBadRequest(err) {
		t.Errorf("a broken patch: %v", err)
	}
}

// What kubectl get -w does: a table for each change, with the columns in the first only.
func TestWatchedTables(t *testing.T) {
	e := newEnv(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, e.config.Host+"/apis/"+v1alpha1.GroupVersion.String()+"/namespaces/default/operations?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	o := newOperation("ws", "key", v1alpha1.ToolBash)
	create(t, e.Client, o)
	finish(t, e.Client, o)
	events := json.NewDecoder(resp.Body)
	for i, want := range []string{"ADDED", "MODIFIED"} {
		var event struct {
			Type   string
			Object metav1.Table
		}
		if err := events.Decode(&event); err != nil {
			t.Fatal(err)
		}
		if event.Type != want || len(event.Object.Rows) != 1 || event.Object.Rows[0].Cells[0] != o.Name || (len(event.Object.ColumnDefinitions) > 0) != (i == 0) {
			t.Errorf("event %d: %s with %d columns, %d rows", i, event.Type, len(event.Object.ColumnDefinitions), len(event.Object.Rows))
		}
	}
}

// Who comes back after too long is told to list again.
func TestOldVersionsExpire(t *testing.T) {
	e := newEnvWith(t, storage.Options{HistoryEvents: 2, HistoryRevisions: 4})
	c := e.remote(t)
	p := newProject("busy")
	create(t, c, p)
	old := p.ResourceVersion
	for i := range 30 {
		p.Spec.DisplayName = fmt.Sprint(i)
		if err := c.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	w, err := c.Watch(t.Context(), &v1alpha1.ProjectList{}, client.InNamespace(v1alpha1.Namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: old}})
	if err == nil {
		defer w.Stop()
		if ev := nextOfAny(t, w); ev.Type == watch.Error {
			err = apierrors.FromObject(ev.Object)
		}
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("watching from %s when %s is current: %v", old, p.ResourceVersion, err)
	}
}

// An ordinary informer, as other programs have it, follows over HTTP.
func TestInformerOverHTTP(t *testing.T) {
	e := newEnv(t)
	create(t, e.Client, newProject("before"))
	factory := dynamicinformer.NewDynamicSharedInformerFactory(e.dynamic(t), 0)
	informer := factory.ForResource(v1alpha1.GroupVersion.WithResource("projects"))
	names := func() string {
		var names []string
		for _, key := range informer.Informer().GetStore().ListKeys() {
			names = append(names, strings.TrimPrefix(key, v1alpha1.Namespace+"/"))
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	stop := make(chan struct{})
	factory.Start(stop)
	defer factory.Shutdown()
	defer close(stop)
	eventually(t, "the informer has what was there", func() bool { return names() == "before" })
	after := newProject("after")
	create(t, e.Client, after)
	eventually(t, "the informer has what came", func() bool { return names() == "after before" })
	if err := e.Client.Delete(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the informer lost what went", func() bool { return names() == "before" })
}
