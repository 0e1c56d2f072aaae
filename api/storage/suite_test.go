package storage

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
)

var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme)
)

func init() {
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	utilruntime.Must(example.AddToScheme(scheme))
	utilruntime.Must(examplev1.AddToScheme(scheme))
}

func podConfig() StoreConfig {
	return StoreConfig{
		Codec:              apitesting.TestCodec(codecs, examplev1.SchemeGroupVersion),
		NewFunc:            func() runtime.Object { return &example.Pod{} },
		NewListFunc:        func() runtime.Object { return &example.PodList{} },
		ResourcePrefix:     "/pods/",
		GroupResource:      schema.GroupResource{Resource: "pods"},
		RemainingItemCount: true,
	}
}

// tier is one way to keep objects that the suite is run against.
type tier struct {
	name      string
	disk      bool
	transform bool
	volatile  func(runtime.Object) bool
	slow      bool // slow tests run here
}

var everything = func(runtime.Object) bool { return true }

// half sends every other object, by its name, to the memory tier.
var half = func(obj runtime.Object) bool {
	name := obj.(*example.Pod).Name
	sum := 0
	for _, c := range name {
		sum += int(c)
	}
	return sum%2 == 0
}

var tiers = []tier{
	{name: "disk", disk: true},
	{name: "volatile", disk: true, volatile: everything},
	{name: "mixed", disk: true, volatile: half, slow: true},
	{name: "memory"},
	{name: "disk with transformer", disk: true, transform: true},
	{name: "mixed with transformer", disk: true, transform: true, volatile: half},
}

// suiteStore is a store under test with what the suite needs beside it.
type suiteStore struct {
	*store
	other storage.Interface // another resource of the same DB
}

func openTest(t testing.TB, change ...func(*Options)) *DB {
	t.Helper()
	o := Options{Dir: t.TempDir(), BookmarkInterval: 500 * time.Millisecond}
	for _, c := range change {
		c(&o)
	}
	db, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func newSuiteStore(t *testing.T, on tier, change ...func(*StoreConfig)) *suiteStore {
	t.Helper()
	db := openTest(t, func(o *Options) {
		if !on.disk {
			o.Dir = ""
		}
	})
	cfg := podConfig()
	cfg.Volatile = on.volatile
	if on.transform {
		cfg.Transformer = storagetesting.NewPrefixTransformer([]byte("test!"), false)
	}
	for _, c := range change {
		c(&cfg)
	}
	st, err := db.newStore(cfg)
	require.NoError(t, err)
	cfg.ResourcePrefix = "/others/"
	other, err := db.Store(cfg)
	require.NoError(t, err)
	return &suiteStore{store: st, other: other}
}

func (s *suiteStore) raise(ctx context.Context, t *testing.T) int64 {
	out := &example.Pod{}
	name := fmt.Sprintf("other-%d", s.db.CurrentRevision())
	require.NoError(t, s.other.Create(ctx, "/others/"+name, &example.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}, out, 0))
	rev, err := s.versioner.ObjectResourceVersion(out)
	require.NoError(t, err)
	return int64(rev)
}

func (s *suiteStore) compact(ctx context.Context, t *testing.T, rev string) {
	n, err := s.versioner.ParseResourceVersion(rev)
	require.NoError(t, err)
	require.NoError(t, s.db.Compact(ctx, n))
}

// compactAndRaise also raises the revision, as a compaction through etcd does.
func (s *suiteStore) compactAndRaise(ctx context.Context, t *testing.T, rev string) {
	s.compact(ctx, t, rev)
	s.raise(ctx, t)
}

// storedClean checks that what is stored carries no resource version.
func (s *suiteStore) storedClean(_ context.Context, t *testing.T, key string) {
	require.NoError(t, s.db.enter())
	defer s.db.leave()
	r, ok, err := s.db.read(key, s.db.rev.Load())
	require.NoError(t, err)
	require.True(t, ok, key)
	plain, _, err := s.unseal(t.Context(), key, r.value)
	require.NoError(t, err)
	obj, err := runtime.Decode(s.cfg.Codec, plain)
	require.NoError(t, err)
	require.Empty(t, obj.(*example.Pod).ResourceVersion)
}

// UpdatePrefixTransformer implements what the suite needs to spoil reads.
func (s *suiteStore) UpdatePrefixTransformer(change storagetesting.PrefixTransformerModifier) func() {
	before := s.transform.(*storagetesting.PrefixTransformer)
	copied := *before
	s.transform = change(&copied)
	return func() { s.transform = before }
}

// UpdateTransformer is the same for any transformer.
func (s *suiteStore) UpdateTransformer(change storagetesting.TransformerModifier) func() {
	before := s.transform
	s.transform = change(before)
	return func() { s.transform = before }
}

// failingCodec fails to decode on demand.
type failingCodec struct {
	runtime.Codec
	fail atomic.Bool
}

func (c *failingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if c.fail.Load() {
		return nil, nil, errors.New("synthetic error")
	}
	return c.Codec.Decode(data, defaults, into)
}

type suiteTest struct {
	run       func(context.Context, *testing.T, *suiteStore)
	transform bool // runs only with a transformer
	slow      bool // waits for seconds: runs on slow tiers only
	corrupt   bool // runs with deletion of undecodable objects allowed
	opened    func(*StoreConfig)
}

func plain(run func(context.Context, *testing.T, storage.Interface)) suiteTest {
	return suiteTest{run: func(ctx context.Context, t *testing.T, s *suiteStore) { run(ctx, t, s) }}
}

func slow(test suiteTest) suiteTest {
	test.slow = true
	return test
}

func anyCalls(*testing.T, uint64, uint64) {}

// suite holds every function of the upstream suite that is run, by name.
var suite = map[string]suiteTest{
	"RunTestCreateWithKeyExist":                               plain(storagetesting.RunTestCreateWithKeyExist),
	"RunTestGet":                                              plain(storagetesting.RunTestGet),
	"RunTestUnconditionalDelete":                              plain(storagetesting.RunTestUnconditionalDelete),
	"RunTestConditionalDelete":                                plain(storagetesting.RunTestConditionalDelete),
	"RunTestDeleteWithSuggestion":                             plain(storagetesting.RunTestDeleteWithSuggestion),
	"RunTestDeleteWithSuggestionAndConflict":                  plain(storagetesting.RunTestDeleteWithSuggestionAndConflict),
	"RunTestDeleteWithConflict":                               plain(storagetesting.RunTestDeleteWithConflict),
	"RunTestDeleteWithSuggestionOfDeletedObject":              plain(storagetesting.RunTestDeleteWithSuggestionOfDeletedObject),
	"RunTestValidateDeletionWithSuggestion":                   plain(storagetesting.RunTestValidateDeletionWithSuggestion),
	"RunTestValidateDeletionWithOnlySuggestionValid":          plain(storagetesting.RunTestValidateDeletionWithOnlySuggestionValid),
	"RunTestPreconditionalDeleteWithSuggestion":               plain(storagetesting.RunTestPreconditionalDeleteWithSuggestion),
	"RunTestPreconditionalDeleteWithOnlySuggestionPass":       plain(storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass),
	"RunTestGetListRecursivePrefix":                           plain(storagetesting.RunTestGetListRecursivePrefix),
	"RunTestGuaranteedUpdateWithConflict":                     plain(storagetesting.RunTestGuaranteedUpdateWithConflict),
	"RunTestGuaranteedUpdateWithSuggestionAndConflict":        plain(storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
	"RunTestListPaging":                                       plain(storagetesting.RunTestListPaging),
	"RunTestNamespaceScopedList":                              plain(storagetesting.RunTestNamespaceScopedList),
	"RunTestKeySchema":                                        plain(storagetesting.RunTestKeySchema),
	"RunTestWatch":                                            plain(storagetesting.RunTestWatch),
	"RunTestDeleteTriggerWatch":                               plain(storagetesting.RunTestDeleteTriggerWatch),
	"RunTestWatchFromNonZero":                                 plain(storagetesting.RunTestWatchFromNonZero),
	"RunTestDelayedWatchDelivery":                             slow(plain(storagetesting.RunTestDelayedWatchDelivery)),
	"RunTestWatchContextCancel":                               plain(storagetesting.RunTestWatchContextCancel),
	"RunTestWatcherTimeout":                                   plain(storagetesting.RunTestWatcherTimeout),
	"RunTestWatchDeleteEventObjectHaveLatestRV":               plain(storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
	"RunTestWatchInitializationSignal":                        plain(storagetesting.RunTestWatchInitializationSignal),
	"RunTestClusterScopedWatch":                               plain(storagetesting.RunTestClusterScopedWatch),
	"RunTestNamespaceScopedWatch":                             plain(storagetesting.RunTestNamespaceScopedWatch),
	"RunTestOptionalWatchBookmarksWithCorrectResourceVersion": slow(plain(storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion)),
	"RunSendInitialEventsBackwardCompatibility":               plain(storagetesting.RunSendInitialEventsBackwardCompatibility),
	"RunWatchSemantics":                                       plain(storagetesting.RunWatchSemantics),
	"RunWatchSemanticInitialEventsExtended":                   plain(storagetesting.RunWatchSemanticInitialEventsExtended),
	"RunWatchListMatchSingle":                                 plain(storagetesting.RunWatchListMatchSingle),
	"RunTestCreate": {run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestCreate(ctx, t, s, s.storedClean)
	}},
	"RunTestWatchDispatchBookmarkEvents": {slow: true, run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, s, true)
	}},
	"RunOptionalTestProgressNotify": {run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunOptionalTestProgressNotify(ctx, t, s, s.raise)
	}},
	"RunTestWatchFromZero": {run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestWatchFromZero(ctx, t, s, s.compact)
	}},
	"RunTestList": {run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestList(ctx, t, s, s.compactAndRaise, false, storagetesting.NewKubernetesRecorder(nil))
	}},
	"RunTestConsistentList": {run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestConsistentList(ctx, t, s, s.raise, false, true, false)
	}},
	"RunTestGetListNonRecursive": {run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestGetListNonRecursive(ctx, t, s.raise, s)
	}},
	"RunTestListContinuation": {run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestListContinuation(ctx, t, s, anyCalls)
	}},
	"RunTestListPaginationRareObject": {run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestListPaginationRareObject(ctx, t, s, anyCalls)
	}},
	"RunTestListContinuationWithFilter": {run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestListContinuationWithFilter(ctx, t, s, anyCalls)
	}},
	"RunTestListInconsistentContinuation": {run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestListInconsistentContinuation(ctx, t, s, s.compact)
	}},
	"RunTestCompactRevision": {run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestCompactRevision(ctx, t, s, s.raise, s.compact)
	}},
	"RunTestListResourceVersionMatch": {transform: true, run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestListResourceVersionMatch(ctx, t, s)
	}},
	"RunTestGuaranteedUpdate": {transform: true, run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestGuaranteedUpdate(ctx, t, s, s.storedClean)
	}},
	"RunTestGuaranteedUpdateChecksStoredData": {transform: true, run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestGuaranteedUpdateChecksStoredData(ctx, t, s)
	}},
	"RunTestTransformationFailure": {transform: true, run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestTransformationFailure(ctx, t, s)
	}},
	"RunTestWatchError": {transform: true, run: func(ctx context.Context, t *testing.T, s *suiteStore) { storagetesting.RunTestWatchError(ctx, t, s) }},
	"RunWatchErrorIsBlockingFurtherEvents": {transform: true, run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunWatchErrorIsBlockingFurtherEvents(ctx, t, s)
	}},
	"RunTestWatchWithUnsafeDelete": {transform: true, corrupt: true, run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestWatchWithUnsafeDelete(ctx, t, s, errors.New("bits flipped"))
	}},
	"RunTestGetListWithoutErrorAggregation": {transform: true, run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestGetListWithoutErrorAggregation(ctx, t, s, errors.New("bits flipped"))
	}},
	"RunTestGetListWithErrorAggregation": {transform: true, corrupt: true, run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestGetListWithErrorAggregation(ctx, t, s, storage.NewCorruptObjError("", errors.New("bits flipped")))
	}},
	"RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError": {corrupt: true, run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, s)
	}},
	"RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError": {transform: true, corrupt: true, opened: withFailingCodec, run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(ctx, t, s, s.setFailing)
	}},
	"RunTestDeleteExpectedTransformOrDecodeError": {transform: true, corrupt: true, opened: withFailingCodec, run: func(ctx context.Context, t *testing.T, s *suiteStore) {
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, s, s.setFailing)
	}},
	"RunTestStats": {transform: true, run: runStats},
}

func withFailingCodec(c *StoreConfig) { c.Codec = &failingCodec{Codec: c.Codec} }

func (s *suiteStore) setFailing(fail bool) { s.cfg.Codec.(*failingCodec).fail.Store(fail) }

func runStats(ctx context.Context, t *testing.T, s *suiteStore) {
	t.Run("count", func(t *testing.T) {
		storagetesting.RunTestStats(ctx, t, s, s.cfg.Codec, s.transform, false)
	})
	t.Run("sizes", func(t *testing.T) {
		require.NoError(t, s.EnableResourceSizeEstimation(func(context.Context) ([]string, error) { return nil, nil }))
		storagetesting.RunTestStats(ctx, t, s, s.cfg.Codec, s.transform, true)
	})
}

// leftOut names the functions of the upstream suite that are not run, and why.
var leftOut = map[string]string{
	"RunTestCreateWithTTL":           "a time to live is ignored by design: badger's would hide keys without an event, so a reconciler deletes",
	"RunTestGuaranteedUpdateWithTTL": "as RunTestCreateWithTTL",
}

func TestUpstreamSuite(t *testing.T) {
	for name, test := range suite {
		for _, on := range tiers {
			if test.transform && !on.transform || test.slow && !on.slow {
				continue
			}
			t.Run(name+"/"+on.name, func(t *testing.T) {
				featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.AllowUnsafeMalformedObjectDeletion, test.corrupt)
				var change []func(*StoreConfig)
				if test.opened != nil {
					change = append(change, test.opened)
				}
				test.run(t.Context(), t, newSuiteStore(t, on, change...))
			})
		}
	}
}

// TestUpstreamSuiteIsComplete reads the upstream package: each of its test
// functions must be run here or be left out with a reason.
func TestUpstreamSuiteIsComplete(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/apiserver").Output()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "pkg/storage/testing/*.go"))
	require.NoError(t, err)
	found := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Run") && !strings.HasPrefix(f.Name.Name, "RunBenchmark") {
				found[f.Name.Name] = true
			}
		}
	}
	require.Greater(t, len(found), 50)
	for name := range found {
		_, run := suite[name]
		require.True(t, run != (leftOut[name] != ""), "%s must be either run or left out with a reason", name)
	}
	for name := range suite {
		require.True(t, found[name], "%s is not in the upstream suite", name)
	}
	for name := range leftOut {
		require.True(t, found[name], "%s is not in the upstream suite", name)
	}
}

var _ value.Context = keyContext("")
