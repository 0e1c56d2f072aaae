package v1alpha1

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"
)

func TestDefaults(t *testing.T) {
	p, th, tu, w := aProject(), aThread(), &Tunnel{}, aWorkspace()
	p.Spec.DisplayName, th.Spec.Title = "", ""
	for range 2 { // defaults of what has defaults change nothing
		p.Default()
		th.Default()
		tu.Default()
		w.Default()
	}
	if p.Spec.DisplayName != "demo" || th.Spec.Title != "Untitled thread" || !slices.Equal(w.Finalizers, []string{Finalizer}) || !slices.Equal(tu.Finalizers, w.Finalizers) ||
		tu.Spec.Watchdog.IntervalSeconds != 10 || tu.Spec.Watchdog.PollTimeoutSeconds != 65 {
		t.Errorf("defaults: %q, %q, %v, %+v", p.Spec.DisplayName, th.Spec.Title, w.Finalizers, tu.Spec.Watchdog)
	}
	p.Spec.DisplayName, th.Spec.Title, tu.Spec.Watchdog = "mine", "mine", TunnelWatchdog{IntervalSeconds: 3, PollTimeoutSeconds: 30}
	p.Default()
	th.Default()
	tu.Default()
	if p.Spec.DisplayName != "mine" || th.Spec.Title != "mine" || tu.Spec.Watchdog.IntervalSeconds != 3 || tu.Spec.Watchdog.PollTimeoutSeconds != 30 {
		t.Error("a default overwrites what was given")
	}
}

// The name claims the key in stores that exist: it must never change.
func TestOperationNameIsStable(t *testing.T) {
	const want = "op-3c5a77b872820a637f9e7ec12cc3fc66fff98312"
	if got := OperationName("3b2a1908-7f6e-4d5c-9b8a-0f1e2d3c4b5a", "key-1"); got != want {
		t.Errorf("the name is %s, want %s", got, want)
	}
	if OperationName("a", "bc") == OperationName("ab", "c") {
		t.Error("workspace and key run into each other")
	}
	if errs := ValidateOperation(anOperation()); len(errs) > 0 {
		t.Error(errs)
	}
}

func TestOver(t *testing.T) {
	for status, over := range map[metav1.ConditionStatus]bool{metav1.ConditionTrue: true, metav1.ConditionFalse: true, metav1.ConditionUnknown: false} {
		o := anOperation()
		o.Status.Conditions = []metav1.Condition{{Type: ConditionReady, Status: metav1.ConditionTrue}, {Type: ConditionSucceeded, Status: status}}
		if o.Over() != over {
			t.Errorf("with Succeeded %s, Over is %v", status, o.Over())
		}
	}
	if o := anOperation(); o.Over() || o.Succeeded().Reason != ReasonPending {
		t.Errorf("a new operation: %v, %+v", o.Over(), o.Succeeded())
	}
}

func TestWorkspaceReady(t *testing.T) {
	w := aWorkspace()
	if w.Ready() {
		t.Error("a new workspace is ready")
	}
	w.Status.Conditions = []metav1.Condition{{Type: ConditionReady, Status: metav1.ConditionTrue}}
	if !w.Ready() {
		t.Error("a ready workspace is not ready")
	}
	now := metav1.Now()
	w.DeletionTimestamp = &now
	if w.Ready() {
		t.Error("a closing workspace is ready")
	}
}

func TestToolsAreKnown(t *testing.T) {
	keyed := []Tool{ToolWrite, ToolEdit, ToolBash, ToolRunStart, ToolWorkHandoff}
	for _, tool := range knownTools {
		if !tool.Known() || tool.Keyed() != slices.Contains(keyed, tool) {
			t.Errorf("%s: known %v, keyed %v", tool, tool.Known(), tool.Keyed())
		}
	}
	if Tool("").Known() || Tool("Read").Known() {
		t.Error("what is no tool is known")
	}
}

// filler makes objects with all fields set, and times as precise as they are written.
func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.2).NumElements(1, 3).MaxDepth(12).Funcs(
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(c.Int63n(4e9), 0) },
		func(t *metav1.MicroTime, c randfill.Continue) {
			*t = metav1.NewMicroTime(time.UnixMicro(c.Int63n(4e15)).Local())
		},
		func(s *string, c randfill.Continue) { *s = strings.ToValidUTF8(c.String(20), "") },
		func(m *metav1.TypeMeta, _ randfill.Continue) { *m = metav1.TypeMeta{} },
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			*m = metav1.ObjectMeta{Name: c.String(10), Generation: c.Int63(), Labels: map[string]string{"a": c.String(5)}, Finalizers: []string{Finalizer}}
		},
	)
}

// What is written is read again, and unknown fields are not.
func TestRoundTrip(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	codec := codecs.LegacyCodec(GroupVersion)
	for _, empty := range []runtime.Object{&Project{}, &Thread{}, &Workspace{}, &Operation{}, &Run{}, &Handoff{}, &Tunnel{}} {
		for range 50 {
			seed := rand.Int63()
			want := empty.DeepCopyObject()
			filler(seed).Fill(want)
			b, err := runtime.Encode(codec, want)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			got, err := runtime.Decode(codecs.UniversalDeserializer(), b)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			got.GetObjectKind().SetGroupVersionKind(want.GetObjectKind().GroupVersionKind())
			if again, err := json.Marshal(got); err != nil || !sameJSON(t, again, want) {
				t.Errorf("%T, seed %d:\n%s\nbecame (%v)\n%s", empty, seed, b, err, again)
			}
			if c := want.DeepCopyObject(); !reflect.DeepEqual(c, want) {
				t.Errorf("%T, seed %d: a copy differs", empty, seed)
			}
		}
	}
}

func sameJSON(t *testing.T, got []byte, want any) bool {
	t.Helper()
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	return string(got) == string(b)
}
