package v1alpha1

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// codes says which code of the contract each reason of a failed bash has. A reason that is new is decided here.
var codes = map[string]string{
	// of the engines
	"FileNotFound": CodeExecutionFailed, "PermissionDenied": CodeExecutionFailed, "NotADirectory": CodeExecutionFailed,
	"IsADirectory": CodeExecutionFailed, "UnsupportedFile": CodeUnsupportedFile, "FileTooLarge": CodeFileTooLarge,
	"InvalidPath": CodeInvalidPath, "InvalidPattern": CodeExecutionFailed, "OffsetBeyondEnd": CodeExecutionFailed,
	"RevisionConflict": CodeRevisionConflict, "TextNotFound": CodeExecutionFailed, "TextAmbiguous": CodeExecutionFailed,
	"EditsOverlap": CodeExecutionFailed, "NoChange": CodeExecutionFailed, "InvalidEdit": CodeExecutionFailed,
	"UnsupportedEncoding": CodeExecutionFailed, "NoSpace": CodeExecutionFailed, "TooManyLinks": CodeExecutionFailed,
	"ReadOnlyFileSystem": CodeExecutionFailed, "InputOutput": CodeExecutionFailed, "ExitedNonZero": CodeCommandFailed,
	"KilledBySignal": CodeCommandFailed, "TimedOut": CodeCommandTimeout, "Cancelled": CodeCommandCancelled,
	"SpawnFailed": CodeCommandFailed, "InvalidTimeout": CodeInvalidArguments, "SkillNotFound": CodeSkillNotFound,
	// of the controllers
	ReasonSucceeded: "", ReasonRecoveredAfterCrash: "", ReasonNotStarted: CodeExecutionFailed,
	ReasonOutcomeUncertain: CodeOutcomeUncertain, ReasonFileBusy: CodeFileBusy, ReasonWorkspaceExpired: CodeWorkspaceExpired,
	ReasonStoreUnavailable: CodeExecutionFailed, ReasonInvalidWorkspace: CodeInvalidWorkspace,
	ReasonInvalidProjectRoot: CodeInvalidProjectRoot, ReasonProjectNotFound: CodeProjectNotFound,
	ReasonThreadNotFound: CodeThreadNotFound, ReasonThreadConflict: CodeThreadConflict, ReasonWorkspaceLimit: CodeWorkspaceLimit,
	ReasonRunActive: CodeRunActive, ReasonRunConflict: CodeRunConflict, ReasonRunFinished: CodeRunFinished,
	ReasonWorkActive: CodeWorkActive, ReasonInternalError: CodeExecutionFailed,
}

// notFailures are reasons that no failed call has.
var notFailures = []string{ReasonPending, ReasonWaitingForFile, ReasonRunning, ReasonOpened, ReasonClosing, ReasonDirectoryNotFound,
	// of tunnels
	ReasonConnected, ReasonClientStarting, ReasonClientNotFound, ReasonClientUnusable, ReasonCredentialUnusable, ReasonClientExited,
	ReasonClientUnresponsive, ReasonClientNotReady, ReasonPollStale, ReasonRouteChanged, ReasonControlPlaneUnreachable,
	ReasonClientUnstoppable, ReasonSuspended, ReasonBridgeStopped}

func TestCodeFor(t *testing.T) {
	for reason, want := range codes {
		if got := CodeFor(ToolBash, reason); got != want {
			t.Errorf("%s has the code %q, want %q", reason, got, want)
		}
	}
	// The contract: cancelled reads have no code of their own.
	for _, tool := range knownTools {
		want := CodeExecutionFailed
		if tool.Keyed() {
			want = CodeCommandCancelled
		}
		if got := CodeFor(tool, ReasonCancelled); got != want {
			t.Errorf("a cancelled %s has the code %s, want %s", tool, got, want)
		}
	}
	if got := CodeFor(ToolBash, "SomethingNew"); got != CodeExecutionFailed {
		t.Errorf("an unknown reason has the code %s", got)
	}
}

// Each reason that engines or controllers can give has a code that somebody chose, and can stand in a condition.
func TestEveryReasonIsDecided(t *testing.T) {
	form := regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`) // what a condition's reason may be
	engines := constants(t, "../../controllers/engine/*.go", func(_, typ string) bool { return typ == "Reason" })
	own := constants(t, "*.go", func(name, _ string) bool { return strings.HasPrefix(name, "Reason") })
	if len(engines) < 20 || len(own) < 15 {
		t.Fatalf("only %d and %d reasons found", len(engines), len(own))
	}
	for _, reason := range slices.Concat(engines, own) {
		if _, decided := codes[reason]; !decided && !slices.Contains(notFailures, reason) {
			t.Errorf("nobody decided which code %s has", reason)
		}
		if !form.MatchString(reason) || len(reason) > 64 {
			t.Errorf("%q cannot be a condition's reason", reason)
		}
	}
	for _, code := range constants(t, "*.go", func(name, _ string) bool { return strings.HasPrefix(name, "Code") }) {
		if !regexp.MustCompile(`^[A-Z]+(_[A-Z]+)*$`).MatchString(code) || len(code) > 64 {
			t.Errorf("%q is no code", code)
		}
	}
}

// constants returns the values of string constants in source files.
func constants(t *testing.T, pattern string, wanted func(name, typ string) bool) (values []string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				values = append(values, constantsOf(t, g, wanted)...)
			}
		}
	}
	return values
}

func constantsOf(t *testing.T, g *ast.GenDecl, wanted func(name, typ string) bool) (values []string) {
	t.Helper()
	for _, s := range g.Specs {
		v := s.(*ast.ValueSpec)
		typ := ""
		if id, ok := v.Type.(*ast.Ident); ok {
			typ = id.Name
		}
		for i, name := range v.Names {
			if !wanted(name.Name, typ) || i >= len(v.Values) {
				continue
			}
			lit, ok := v.Values[i].(*ast.BasicLit)
			if !ok {
				continue // one constant named after another
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, text)
		}
	}
	return values
}
