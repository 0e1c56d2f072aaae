package hack

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rigbridge/rigbridge"

// rule says that the packages of a folder must not depend on a dependency, directly or through others.
// A path stands for itself and for all below it; ours begin without the module's name.
type rule struct {
	packages  string
	forbidden string
	why       string
	except    []string // packages that may
	direct    bool     // only direct imports are forbidden
	tests     bool     // also what tests import
}

const (
	meetInObjects = "mcpserver and controllers meet in objects only"
	portable      = "it runs against any Kubernetes API, so it knows client interfaces and never the store"
	engines       = "engines know no Kubernetes, no MCP, no logger"
	aClient       = "it is a client of the API like any other"
)

var rules = []rule{
	{packages: "", forbidden: "github.com/dgraph-io/badger", except: []string{"api/storage", "hack"}, direct: true, tests: true, why: "only the store knows its engine"},
	{packages: "", forbidden: "cmd", except: []string{"cmd"}, tests: true, why: "programs are the end of the line"},
	{packages: "", forbidden: "hack", except: []string{"hack"}, why: "the product does not need its workshop"},
	{packages: "", forbidden: "testing", except: []string{"hack", "controllers/engine/enginetest"}, direct: true, why: "test support stays out of the product"},

	{packages: "api/v1alpha1", forbidden: "k8s.io/apiserver", why: "types need apimachinery alone"},
	{packages: "api/v1alpha1", forbidden: "sigs.k8s.io/controller-runtime", why: "types need apimachinery alone"},
	{packages: "api/v1alpha1", forbidden: "k8s.io/client-go", why: "types need apimachinery alone"},
	{packages: "api/storage", forbidden: "api/v1alpha1", why: "the store knows no kind by name"},
	{packages: "api/storage", forbidden: "api/registry", why: "the store knows no kind by name"},
	{packages: "api/registry", forbidden: "api/storage", why: "a strategy does not care where objects are kept"},
	{packages: "api/atomicfile", forbidden: "api", why: "it lies below both sides and knows files only"},
	{packages: "api", forbidden: "controllers", why: "the API does not know who drives the objects"},
	{packages: "api", forbidden: "mcpserver", why: "the API does not know who asks"},
	{packages: "api", forbidden: "github.com/mark3labs/mcp-go", why: "the API does not know who asks"},

	{packages: "controllers", forbidden: "mcpserver", tests: true, why: meetInObjects},
	{packages: "controllers", forbidden: "github.com/mark3labs/mcp-go", tests: true, why: meetInObjects},
	{packages: "controllers", forbidden: "api/storage", why: portable},
	{packages: "controllers", forbidden: "api/registry", why: portable},
	{packages: "controllers", forbidden: "api/server", why: portable},
	{packages: "controllers", forbidden: "k8s.io/apiserver", direct: true, why: portable},
	{packages: "controllers/engine", forbidden: "k8s.io", tests: true, why: engines},
	{packages: "controllers/engine", forbidden: "sigs.k8s.io", tests: true, why: engines},
	{packages: "controllers/engine", forbidden: "github.com/go-logr/logr", tests: true, why: engines},
	{packages: "controllers/engine", forbidden: "go.uber.org/zap", tests: true, why: engines},
	{packages: "controllers/engine", forbidden: "log", direct: true, why: engines},
	{packages: "controllers/engine", forbidden: "api", tests: true, why: engines},

	{packages: "mcpserver", forbidden: "controllers", tests: true, why: meetInObjects},
	{packages: "mcpserver", forbidden: "api/storage", why: portable},
	{packages: "mcpserver", forbidden: "api/registry", why: portable},
	{packages: "mcpserver", forbidden: "api/server", why: portable},
	{packages: "mcpserver", forbidden: "k8s.io/apiserver", direct: true, why: portable},

	{packages: "api/dashboard", forbidden: "api/storage", why: aClient},
	{packages: "api/dashboard", forbidden: "api/registry", why: aClient},
	{packages: "api/dashboard", forbidden: "api/server", why: aClient},
	{packages: "api/dashboard", forbidden: "api/exchange", why: aClient},
	{packages: "api/dashboard", forbidden: "k8s.io/apiserver", why: aClient},
	{packages: "api/status", forbidden: "sigs.k8s.io/controller-runtime", why: "it shapes objects and reads none"},
	{packages: "api/status", forbidden: "k8s.io/client-go", why: "it shapes objects and reads none"},

	{packages: "cmd/rigctl", forbidden: "api/storage", why: aClient},
	{packages: "cmd/rigctl", forbidden: "api/server", why: aClient},
	{packages: "cmd/rigctl", forbidden: "controllers", why: aClient},
	{packages: "cmd/rigctl", forbidden: "mcpserver", why: aClient},
	{packages: "cmd/rigctl", forbidden: "k8s.io/apiserver", why: aClient},

	{packages: "hack/e2e", forbidden: "api", except: []string{"hack/e2e/conformance"}, tests: true, why: "end-to-end tests see what a client sees"},
	{packages: "hack/e2e", forbidden: "mcpserver", except: []string{"hack/e2e/conformance"}, tests: true, why: "end-to-end tests see what a client sees"},
	{packages: "hack/e2e", forbidden: "github.com/mark3labs/mcp-go", except: []string{"hack/e2e/conformance", "hack/e2e/goclients"}, tests: true, why: "a fault of the library must not hide in both ends"},
	{packages: "hack/bench", forbidden: "api", tests: true, why: "the benchmark is a client"},
	{packages: "hack/bench", forbidden: "mcpserver", tests: true, why: "the benchmark is a client"},
}

// listed is what go list tells about a package.
type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
	Deps                               []string
}

func TestDependencyDirections(t *testing.T) {
	for _, p := range packages(t) {
		for _, r := range rules {
			if bad := r.broken(p); len(bad) > 0 {
				t.Errorf("%s depends on %s (and %d more that the same rule forbids): %s", p.ImportPath, bad[0], len(bad)-1, r.why)
			}
		}
	}
}

// Rules that match nothing would hold nothing.
func TestRulesBite(t *testing.T) {
	p := listed{
		ImportPath: module + "/controllers/operation",
		Imports:    []string{module + "/mcpserver/tools", "github.com/dgraph-io/badger/v4"},
		Deps:       []string{module + "/mcpserver/tools", "github.com/dgraph-io/badger/v4", module + "/api/storage", "k8s.io/apiserver/pkg/storage"},
	}
	broken := map[string]bool{}
	for _, r := range rules {
		for _, bad := range r.broken(p) {
			broken[bad] = true
		}
	}
	for _, want := range []string{module + "/mcpserver/tools", "github.com/dgraph-io/badger/v4", module + "/api/storage"} {
		if !broken[want] {
			t.Errorf("no rule forbids %s", want)
		}
	}
	if broken["k8s.io/apiserver/pkg/storage"] {
		t.Error("a rule about direct imports looks further")
	}
	if (rule{packages: "api", forbidden: "mcpserver"}).broken(listed{ImportPath: module + "/apiary", Deps: []string{module + "/mcpserver"}}) != nil {
		t.Error("a folder's rule applies to its neighbour")
	}
}

// broken lists the dependencies of the package that the rule forbids.
func (r rule) broken(p listed) (bad []string) {
	own := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
	if !within(own, r.packages) || slices.ContainsFunc(r.except, func(e string) bool { return within(own, e) }) {
		return nil
	}
	deps := p.Deps
	if r.direct {
		deps = p.Imports
	}
	if r.tests {
		deps = slices.Concat(deps, p.TestImports, p.XTestImports)
	}
	forbidden := r.forbidden
	if first, _, _ := strings.Cut(forbidden, "/"); slices.Contains([]string{"api", "cmd", "controllers", "hack", "mcpserver"}, first) {
		forbidden = module + "/" + forbidden
	}
	for _, d := range deps {
		if within(d, forbidden) && d != p.ImportPath && !slices.Contains(bad, d) {
			bad = append(bad, d)
		}
	}
	return bad
}

func within(path, folder string) bool {
	return folder == "" || path == folder || strings.HasPrefix(path, folder+"/")
}

func packages(t *testing.T) (all []listed) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports,Deps", "./...")
	cmd.Dir = ".."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// unwanted are words that no file may hold. They are put together here so that this file passes.
var unwanted = map[string]string{
	"/wo" + "rk/main":         "a path of one machine",
	"/wo" + "rk/shared":       "a path of one machine",
	"/wo" + "rk/.":            "a path of one machine",
	"proxy.go" + "lang.org":   "the ordinary clients know where their registries are",
	"registry." + "npmjs.org": "the ordinary clients know where their registries are",
	"deb." + "debian.org":     "the ordinary clients know where their registries are",
	"TO" + "DO":               "finish it, or say in the docs what is left open",
	"FIX" + "ME":              "fix it, or say in the docs what is left open",
}

func TestNoFileSaysWhatItMustNot(t *testing.T) {
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("needs a git checkout: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		path := filepath.Join("..", name)
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue // deleted since, or a link
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		for word, why := range unwanted {
			if generated := strings.HasPrefix(filepath.Base(name), "zz_generated"); bytes.Contains(b, []byte(word)) && !generated {
				t.Errorf("%s holds %q: %s", name, word, why)
			}
		}
	}
}
