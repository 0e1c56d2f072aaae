package v1alpha1

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// change is one change of a valid object and the field that is then complained about; "" means none.
type change[T any] struct {
	name  string
	make  func(*T)
	field string
}

func checkCreate[T any](t *testing.T, valid func() *T, validate func(*T) field.ErrorList, changes []change[T]) {
	t.Helper()
	for _, c := range changes {
		o := valid()
		c.make(o)
		expectField(t, c.name, validate(o), c.field)
	}
	expectField(t, "unchanged", validate(valid()), "")
}

func checkUpdate[T any](t *testing.T, valid func() *T, validate func(obj, old *T) field.ErrorList, changes []change[T]) {
	t.Helper()
	for _, c := range changes {
		o := valid()
		c.make(o)
		expectField(t, c.name, validate(o, valid()), c.field)
	}
	expectField(t, "unchanged", validate(valid(), valid()), "")
}

func expectField(t *testing.T, name string, errs field.ErrorList, want string) {
	t.Helper()
	switch {
	case want == "" && len(errs) > 0:
		t.Errorf("%s: %v", name, errs.ToAggregate())
	case want != "" && len(errs) != 1:
		t.Errorf("%s: %d errors, want one about %s: %v", name, len(errs), want, errs.ToAggregate())
	case want != "" && errs[0].Field != want:
		t.Errorf("%s: the error is about %s, want %s: %v", name, errs[0].Field, want, errs[0])
	case want != "" && len(errs[0].Error()) > 600:
		t.Errorf("%s: the error repeats what is too long (%d characters)", name, len(errs[0].Error()))
	}
}

// wide counts as one character and three bytes.
const wide = "€"

// badPaths are what no path of a directory may be.
var badPaths = map[string]string{
	"empty": "", "relative": "srv/demo", "dots": "/srv/../demo", "double slash": "/srv//demo", "trailing slash": "/srv/",
	"NUL": "/srv/\x00", "too long": "/" + strings.Repeat("a", maxPath),
}

func pathChanges[T any](at string, set func(*T, string)) (changes []change[T]) {
	for name, path := range badPaths {
		changes = append(changes, change[T]{at + " " + name, func(o *T) { set(o, path) }, at})
	}
	return append(changes,
		change[T]{at + " as long as may be", func(o *T) { set(o, "/"+strings.Repeat("a", maxPath-1)) }, ""},
		change[T]{at + " root", func(o *T) { set(o, "/") }, ""},
		change[T]{at + " odd but valid", func(o *T) { set(o, "/srv/ naïve \"dir\"/\xff") }, ""})
}

func referenceChanges[T any](at string, set func(*T, LocalReference)) (changes []change[T]) {
	for name, ref := range map[string]string{"empty": "", "upper case": "Thread", "slash": "a/b", "too long": strings.Repeat("a", 254)} {
		changes = append(changes, change[T]{at + " " + name, func(o *T) { set(o, LocalReference{Name: ref}) }, at + ".name"})
	}
	return changes
}

func textChanges[T any](at string, limit int, set func(*T, string)) []change[T] {
	return []change[T]{
		{at + " as long as may be", func(o *T) { set(o, strings.Repeat(wide, limit)) }, ""},
		{at + " too long", func(o *T) { set(o, strings.Repeat(wide, limit+1)) }, at},
	}
}

func TestValidateProject(t *testing.T) {
	changes := pathChanges("spec.root", func(p *Project, s string) { p.Spec.Root = s })
	changes = append(changes, textChanges("spec.displayName", 255, func(p *Project, s string) { p.Spec.DisplayName = s })...)
	for name, identity := range map[string]string{"empty": "", "no kind": "/srv", "another kind": "svn:/srv", "relative": "git:srv", "too long": "git:/" + strings.Repeat("a", 4200)} {
		changes = append(changes, change[Project]{"identity " + name, func(p *Project) { p.Spec.Identity = identity }, "spec.identity"})
	}
	changes = append(changes, change[Project]{"a directory", func(p *Project) { p.Spec.Identity = "directory:/srv" }, ""})
	checkCreate(t, aProject, ValidateProject, changes)
	checkUpdate(t, aProject, ValidateProjectUpdate, []change[Project]{
		{"another identity", func(p *Project) { p.Spec.Identity = "git:/other/.git" }, "spec.identity"},
		{"renamed", func(p *Project) { p.Spec.DisplayName = "x" }, ""},
		{"moved", func(p *Project) { p.Spec.Root = "/srv/elsewhere" }, ""},
		{"alerts", func(p *Project) { p.Spec.Notifications.Desktop = true }, ""},
		{"a bad root", func(p *Project) { p.Spec.Root = "x" }, "spec.root"},
	})
}

func TestValidateThread(t *testing.T) {
	changes := pathChanges("spec.cwd", func(o *Thread, s string) { o.Spec.Cwd = s })
	changes = append(changes, referenceChanges("spec.projectRef", func(o *Thread, r LocalReference) { o.Spec.ProjectRef = r })...)
	changes = append(changes, textChanges("spec.title", 200, func(o *Thread, s string) { o.Spec.Title = s })...)
	checkCreate(t, aThread, ValidateThread, changes)
	checkUpdate(t, aThread, ValidateThreadUpdate, []change[Thread]{
		{"another directory", func(o *Thread) { o.Spec.Cwd = "/else" }, "spec.cwd"},
		{"another project", func(o *Thread) { o.Spec.ProjectRef.Name = "q" }, "spec.projectRef"},
		{"renamed", func(o *Thread) { o.Spec.Title = "x" }, ""},
	})
}

func TestValidateWorkspace(t *testing.T) {
	changes := pathChanges("spec.cwd", func(o *Workspace, s string) { o.Spec.Cwd = s })
	changes = append(changes, referenceChanges("spec.threadRef", func(o *Workspace, r LocalReference) { o.Spec.ThreadRef = r })...)
	checkCreate(t, aWorkspace, ValidateWorkspace, changes)
	checkUpdate(t, aWorkspace, ValidateWorkspaceUpdate, []change[Workspace]{
		{"another directory", func(o *Workspace) { o.Spec.Cwd = "/else" }, "spec"},
		{"another thread", func(o *Workspace) { o.Spec.ThreadRef.Name = "u" }, "spec"},
		{"a label", func(o *Workspace) { o.Labels = map[string]string{"a": "b"} }, ""},
	})
}

func TestValidateOperation(t *testing.T) {
	// The key is bounded; a change of it changes the name that must follow from it.
	keyed := func(key string) func(*Operation) {
		return func(o *Operation) { o.Spec.RequestKey, o.Name = key, OperationName("w", key) }
	}
	checkCreate(t, anOperation, ValidateOperation, []change[Operation]{
		{"no key", keyed(""), "spec.requestKey"},
		{"longest key", keyed(strings.Repeat(wide, 200)), ""},
		{"too long a key", keyed(strings.Repeat(wide, 201)), "spec.requestKey"},
		{"another name", func(o *Operation) { o.Name = "op-1" }, "metadata.name"},
		{"no digest", func(o *Operation) { o.Spec.ArgumentsDigest = "" }, "spec.argumentsDigest"},
		{"a bare hash", func(o *Operation) { o.Spec.ArgumentsDigest = "sha256:" + strings.Repeat("0", 64) }, "spec.argumentsDigest"},
		{"upper case digest", func(o *Operation) { o.Spec.ArgumentsDigest = noDigest + strings.Repeat("A", 64) }, "spec.argumentsDigest"},
		{"short digest", func(o *Operation) { o.Spec.ArgumentsDigest = noDigest + strings.Repeat("0", 63) }, "spec.argumentsDigest"},
		{"unknown thread name", func(o *Operation) { o.Spec.ThreadRef = &LocalReference{} }, "spec.threadRef.name"},
		{"no thread", func(o *Operation) { o.Spec.ThreadRef = nil }, ""},
		{"no timeout", func(o *Operation) { o.Spec.TimeoutSeconds = 0 }, ""},
		{"longest timeout", func(o *Operation) { o.Spec.TimeoutSeconds = 3600 }, ""},
		{"too long a timeout", func(o *Operation) { o.Spec.TimeoutSeconds = 3601 }, "spec.timeoutSeconds"},
		{"negative timeout", func(o *Operation) { o.Spec.TimeoutSeconds = -1 }, "spec.timeoutSeconds"},
		{"no file expected", func(o *Operation) { o.Spec.ExpectedRevision = "missing" }, ""},
		{"a file expected", func(o *Operation) { o.Spec.ExpectedRevision = "sha256:" + strings.Repeat("a", 64) }, ""},
		{"no revision at all", func(o *Operation) { o.Spec.ExpectedRevision = "latest" }, "spec.expectedRevision"},
	})
	changes := referenceChanges("spec.workspaceRef", func(o *Operation, r LocalReference) { o.Spec.WorkspaceRef = r })
	changes = append(changes, textChanges("spec.cancelledBy", 64, func(o *Operation, s string) { o.Spec.CancelledBy = s })...)
	changes = append(changes, textChanges("spec.payloadRef", 36, func(o *Operation, s string) { o.Spec.PayloadRef = s })...)
	changes = append(changes, textChanges("spec.requestKey", 200, func(o *Operation, s string) { o.Spec.RequestKey = s })...)
	changes = append(changes, pathChanges("spec.paths[0]", func(o *Operation, s string) { o.Spec.Paths[0] = s })...)
	for _, tool := range knownTools {
		if !tool.Keyed() {
			changes = append(changes, change[Operation]{string(tool), func(o *Operation) { o.Spec.Tool = tool }, ""})
		}
	}
	checkCreate(t, aRead, ValidateOperation, append(changes,
		change[Operation]{"no tool", func(o *Operation) { o.Spec.Tool = "" }, "spec.tool"},
		change[Operation]{"unknown tool", func(o *Operation) { o.Spec.Tool = "format" }, "spec.tool"},
		change[Operation]{"a digest of nothing", func(o *Operation) { o.Spec.ArgumentsDigest = "x" }, "spec.argumentsDigest"},
		change[Operation]{"most paths", func(o *Operation) { o.Spec.Paths = many("/a", 16) }, ""},
		change[Operation]{"too many paths", func(o *Operation) { o.Spec.Paths = many("/a", 17) }, "spec.paths"}))
}

func many(s string, n int) []string {
	return strings.Split(strings.Repeat(s+" ", n-1)+s, " ")
}

func TestValidateOperationUpdate(t *testing.T) {
	checkUpdate(t, anOperation, ValidateOperationUpdate, []change[Operation]{
		{"cancelled", func(o *Operation) { o.Spec.Cancel, o.Spec.CancelledBy = true, "person" }, ""},
		{"cancelled by too much", func(o *Operation) { o.Spec.CancelledBy = strings.Repeat("x", 65) }, "spec.cancelledBy"},
		{"another tool", func(o *Operation) { o.Spec.Tool = ToolWrite }, "spec"},
		{"another timeout", func(o *Operation) { o.Spec.TimeoutSeconds = 1 }, "spec"},
		{"other paths", func(o *Operation) { o.Spec.Paths = []string{"/a"} }, "spec"},
		{"another digest", func(o *Operation) { o.Spec.ArgumentsDigest = noDigest + strings.Repeat("1", 64) }, "spec"},
		{"another payload", func(o *Operation) { o.Spec.PayloadRef = "x" }, "spec"},
		{"a label", func(o *Operation) { o.Labels = map[string]string{"a": "b"} }, ""},
	})
	cancelled := func() *Operation {
		o := anOperation()
		o.Spec.Cancel = true
		return o
	}
	checkUpdate(t, cancelled, ValidateOperationUpdate, []change[Operation]{
		{"taken back", func(o *Operation) { o.Spec.Cancel = false }, "spec.cancel"},
		{"cancelled again", func(o *Operation) { o.Spec.Cancel = true }, ""},
	})
}

func TestValidateRun(t *testing.T) {
	changes := referenceChanges("spec.threadRef", func(o *Run, r LocalReference) { o.Spec.ThreadRef = r })
	checkCreate(t, aRun, ValidateRun, append(changes, textChanges("spec.title", 200, func(o *Run, s string) { o.Spec.Title = s })...))
	checkUpdate(t, aRun, ValidateRunUpdate, []change[Run]{
		{"another thread", func(o *Run) { o.Spec.ThreadRef.Name = "u" }, "spec.threadRef"},
		{"renamed", func(o *Run) { o.Spec.Title = "x" }, ""},
	})
}

func TestValidateHandoff(t *testing.T) {
	changes := referenceChanges("spec.threadRef", func(o *Handoff, r LocalReference) { o.Spec.ThreadRef = r })
	changes = append(changes, referenceChanges("spec.runRef", func(o *Handoff, r LocalReference) { o.Spec.RunRef = r })...)
	changes = append(changes, textChanges("spec.summary", 2000, func(o *Handoff, s string) { o.Spec.Summary = s })...)
	for _, reason := range handoffReasons {
		changes = append(changes, change[Handoff]{string(reason), func(o *Handoff) { o.Spec.Reason = reason }, ""})
	}
	checkCreate(t, aHandoff, ValidateHandoff, append(changes,
		change[Handoff]{"no summary", func(o *Handoff) { o.Spec.Summary = "" }, "spec.summary"},
		change[Handoff]{"no reason", func(o *Handoff) { o.Spec.Reason = "" }, "spec.reason"},
		change[Handoff]{"the reference's spelling", func(o *Handoff) { o.Spec.Reason = "needs_input" }, "spec.reason"}))
	checkUpdate(t, aHandoff, ValidateHandoffUpdate, []change[Handoff]{
		{"read", func(o *Handoff) { o.Spec.Acknowledged = true }, ""},
		{"another summary", func(o *Handoff) { o.Spec.Summary = "x" }, "spec"},
	})
	read := func() *Handoff {
		o := aHandoff()
		o.Spec.Acknowledged = true
		return o
	}
	checkUpdate(t, read, ValidateHandoffUpdate, []change[Handoff]{{"unread", func(o *Handoff) { o.Spec.Acknowledged = false }, "spec.acknowledged"}})
}

func TestValidateTunnel(t *testing.T) {
	changes := pathChanges("spec.credential.file", func(o *Tunnel, s string) { o.Spec.Credential.File = s })
	for _, id := range []string{" x", "x\n", "-x", "a b", "ä", "a/b", strings.Repeat("a", 256)} {
		changes = append(changes, change[Tunnel]{fmt.Sprintf("the ID %.10q", id), func(o *Tunnel) { o.Spec.TunnelID = id }, "spec.tunnelID"})
	}
	for address, at := range map[string]string{"https://api.openai.com": "", "http://[::1]:8080/path": "", "api.openai.com": "spec.controlPlaneURL",
		"ftp://a": "spec.controlPlaneURL", "https://": "spec.controlPlaneURL", "https://sam:secret@a": "spec.controlPlaneURL",
		"https://a?key=secret": "spec.controlPlaneURL", "https://" + strings.Repeat("a", 2048): "spec.controlPlaneURL"} {
		changes = append(changes, change[Tunnel]{fmt.Sprintf("at %.30s", address), func(o *Tunnel) { o.Spec.ControlPlaneURL = address }, at})
	}
	changes = append(changes,
		change[Tunnel]{"an ID as OpenAI's", func(o *Tunnel) { o.Spec.TunnelID = "tunnel_0123456789abcdef0123456789abcdef" }, ""},
		change[Tunnel]{"an ID as long as may be", func(o *Tunnel) { o.Spec.TunnelID = strings.Repeat("a", 255) }, ""},
		change[Tunnel]{"a name as long as may be", func(o *Tunnel) { o.Name = strings.Repeat("a", 63) }, ""},
		change[Tunnel]{"a longer name", func(o *Tunnel) { o.Name = strings.Repeat("a", 64) }, "metadata.name"},
		change[Tunnel]{"no ID", func(o *Tunnel) { o.Spec.TunnelID = "" }, "spec.tunnelID"},
		change[Tunnel]{"a relative client", func(o *Tunnel) { o.Spec.ClientPath = "bin/client" }, "spec.clientPath"},
		change[Tunnel]{"a client", func(o *Tunnel) { o.Spec.ClientPath = "/bin/client" }, ""},
		change[Tunnel]{"suspended", func(o *Tunnel) { o.Spec.Suspended = true }, ""})
	for _, b := range []struct {
		seconds int32
		at      string
		set     func(*Tunnel, int32)
		ok      bool
	}{
		{0, "spec.watchdog.intervalSeconds", setInterval, false}, {1, "spec.watchdog.intervalSeconds", setInterval, true},
		{3600, "spec.watchdog.intervalSeconds", setInterval, true}, {3601, "spec.watchdog.intervalSeconds", setInterval, false},
		{9, "spec.watchdog.pollTimeoutSeconds", setPollTimeout, false}, {10, "spec.watchdog.pollTimeoutSeconds", setPollTimeout, true},
		{86400, "spec.watchdog.pollTimeoutSeconds", setPollTimeout, true}, {86401, "spec.watchdog.pollTimeoutSeconds", setPollTimeout, false},
	} {
		c := change[Tunnel]{b.at, func(o *Tunnel) { b.set(o, b.seconds) }, b.at}
		if b.ok {
			c.field = ""
		}
		changes = append(changes, c)
	}
	checkCreate(t, aTunnel, ValidateTunnel, changes)
	checkUpdate(t, aTunnel, ValidateTunnelUpdate, []change[Tunnel]{
		{"suspended", func(o *Tunnel) { o.Spec.Suspended = true }, ""},
		{"a bad credential", func(o *Tunnel) { o.Spec.Credential.File = "key" }, "spec.credential.file"},
	})
}

// A secret that was put where it does not belong is not repeated in the error.
func TestControlPlaneErrorHoldsNoSecret(t *testing.T) {
	for _, address := range []string{"https://sam:hunter2@a", "https://a?key=hunter2", "://hunter2"} {
		o := aTunnel()
		o.Spec.ControlPlaneURL = address
		if errs := ValidateTunnel(o); len(errs) != 1 || strings.Contains(errs.ToAggregate().Error(), "hunter2") {
			t.Errorf("%s: %v", address, errs)
		}
	}
}

func setInterval(o *Tunnel, s int32)    { o.Spec.Watchdog.IntervalSeconds = s }
func setPollTimeout(o *Tunnel, s int32) { o.Spec.Watchdog.PollTimeoutSeconds = s }
