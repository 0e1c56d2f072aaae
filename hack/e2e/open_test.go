package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

func git(t testing.TB, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Demo", "-c", "user.email=demo@example.invalid", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// openedFields is the answer of workspace_open, as the contract has it.
type openedFields struct {
	WorkspaceID string `json:"workspace_id"`
	ProjectID   string `json:"project_id"`
	ThreadID    string `json:"thread_id"`
	Project     struct {
		ID, Identity, Name, Root string
		CreatedAt, LastUsed      int64
		DesktopNotifications     *bool
	}
	Thread struct {
		ID, ProjectID, Title, Cwd string
		CreatedAt, LastUsed       int64
	}
	Cwd, Hostname, Home, Account, OS, Arch, Shell string
	UID                                           *int
	Repository                                    *struct {
		Root         string
		Head, Branch *string
		Dirty        *bool
		Note         string
	}
	Instructions     []string
	InstructionFiles []struct{ Path, Content string } `json:"instruction_files"`
	Skills           []string
	SkillDefinitions []struct {
		Name, Description, Path, Directory string
		Disabled                           *bool `json:"disable_model_invocation"`
	} `json:"skill_definitions"`
	SkillsTruncated *bool  `json:"skills_truncated"`
	ProjectContext  string `json:"project_context"`
	SkillsPrompt    string `json:"skills_prompt"`
	Access          struct {
		Profile, Elevation string
		CwdIsSandbox       *bool `json:"cwd_is_sandbox"`
	}
	ContextNote    string `json:"context_note"`
	Pi             string
	ModelsForTools *bool `json:"models_for_tools"`
	Output         string
}

func openAt(t testing.TB, client *daemon.Client, args daemon.Args) (f openedFields) {
	t.Helper()
	decodeInto(t, client.OK(t, "workspace_open", args).Structured, &f)
	return f
}

// TestOpenAnswer has every field of the answer, in a repository with instructions and a skill.
func TestOpenAnswer(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	client := d.Client()
	dir := gitProject(t)
	put(t, filepath.Join(dir, "CONTEXT.md"), "\nWords of the trade.\n\n")
	put(t, filepath.Join(dir, ".agents/skills/rhyme/SKILL.md"), "---\nname: rhyme\ndescription: Make <rhymes>\n---\nBody\n")
	begun := time.Now().Add(-2 * time.Second).UnixMilli()
	r := client.OK(t, "workspace_open", daemon.Args{"cwd": filepath.Join(dir, "src"), "title": "  Fix the parser "})
	var f openedFields
	decodeInto(t, r.Structured, &f)

	if f.Cwd != filepath.Join(dir, "src") || f.Project.Root != dir || f.Project.Identity != "git:"+filepath.Join(dir, ".git") || f.Project.Name != filepath.Base(dir) ||
		f.Project.ID != f.ProjectID || f.Project.DesktopNotifications == nil || *f.Project.DesktopNotifications {
		t.Errorf("the project is %+v", f.Project)
	}
	if f.Thread.ID != f.ThreadID || f.Thread.ProjectID != f.ProjectID || f.Thread.Title != "Fix the parser" || f.Thread.Cwd != f.Cwd {
		t.Errorf("the thread is %+v", f.Thread)
	}
	for name, at := range map[string]int64{"project": f.Project.CreatedAt, "thread": f.Thread.CreatedAt, "project's use": f.Project.LastUsed, "thread's use": f.Thread.LastUsed} {
		if at < begun || at > time.Now().UnixMilli() {
			t.Errorf("time of the %s: %d", name, at)
		}
	}
	home, err := filepath.EvalSymlinks(d.Home())
	if err != nil {
		t.Fatal(err)
	}
	if f.Hostname == "" || f.Home != home || f.Account == "" || f.UID == nil || *f.UID != os.Getuid() || f.OS == "" || f.Arch == "" || f.Shell != "bash" {
		t.Errorf("the account is shown as %s", r.Raw)
	}
	if p := f.Repository; p == nil || p.Root != dir || p.Head == nil || len(*p.Head) != 40 || p.Branch == nil || *p.Branch != "main" || p.Dirty == nil || !*p.Dirty || p.Note != "" {
		t.Errorf("the repository is %+v", p)
	}
	agents, words := filepath.Join(dir, "AGENTS.md"), filepath.Join(dir, "CONTEXT.md")
	if !reflect.DeepEqual(f.Instructions, []string{agents, words}) || len(f.InstructionFiles) != 2 || f.InstructionFiles[0].Content != "Always answer in rhyme.\n" || f.InstructionFiles[1].Content != "Words of the trade." {
		t.Errorf("the instructions are %v, %+v", f.Instructions, f.InstructionFiles)
	}
	if !strings.HasPrefix(f.ProjectContext, "<project_context>") || !strings.Contains(f.ProjectContext, `<project_instructions path="`+agents+`">`) {
		t.Errorf("the context block is %q", f.ProjectContext)
	}
	skill := filepath.Join(dir, ".agents/skills/rhyme/SKILL.md")
	if len(f.SkillDefinitions) != 1 || f.SkillDefinitions[0].Name != "rhyme" || f.SkillDefinitions[0].Path != skill || f.SkillDefinitions[0].Directory != filepath.Dir(skill) ||
		f.SkillDefinitions[0].Disabled == nil || !reflect.DeepEqual(f.Skills, []string{skill}) || f.SkillsTruncated == nil || *f.SkillsTruncated {
		t.Errorf("the skills are %v, %+v", f.Skills, f.SkillDefinitions)
	}
	if !strings.Contains(f.SkillsPrompt, "<available_skills>") || !strings.Contains(f.SkillsPrompt, "Make &lt;rhymes&gt;") {
		t.Errorf("the catalogue is %q", f.SkillsPrompt)
	}
	if f.Access.Profile == "" || f.Access.Elevation == "" || f.Access.CwdIsSandbox == nil || *f.Access.CwdIsSandbox || f.ContextNote == "" || f.ModelsForTools == nil || *f.ModelsForTools || f.Pi == "" {
		t.Errorf("the rest is %s", r.Raw)
	}
	parts := strings.SplitN(r.Text(), "\n\n", 3)
	if len(parts) != 3 || strings.Contains(parts[0], "\n") || !strings.Contains(parts[0], f.Project.Name) || !strings.Contains(parts[0], "Fix the parser") || !strings.Contains(parts[0], "branch main") ||
		!strings.Contains(parts[1], "work_handoff") || parts[2] != f.ProjectContext+"\n\n"+f.SkillsPrompt || f.Output != r.Text() {
		t.Errorf("the text is %s", r.Text())
	}
}

// TestOpenBare has the answer in a directory without anything: nothing is null that is a list or a text.
func TestOpenBare(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	r := d.Client().OK(t, "workspace_open", nil)
	home, err := filepath.EvalSymlinks(d.Home())
	if err != nil {
		t.Fatal(err)
	}
	if r.String("cwd") != home {
		t.Errorf("without cwd the workspace is in %s", r.String("cwd"))
	}
	for _, name := range []string{"instructions", "instruction_files", "skills", "skill_definitions"} {
		if list, ok := r.Structured[name].([]any); !ok || len(list) != 0 {
			t.Errorf("%s is %v", name, r.Structured[name])
		}
	}
	if repository, there := r.Structured["repository"]; !there || repository != nil || r.Structured["project_context"] != "" || r.Structured["skills_prompt"] != "" {
		t.Errorf("the answer is %s", r.Raw)
	}
	if thread, _ := r.Structured["thread"].(map[string]any); thread["title"] != "Untitled thread" {
		t.Errorf("the thread is %v", thread)
	}
	for _, cwd := range []string{"~", ".", home} {
		if f := openAt(t, d.Client(), daemon.Args{"cwd": cwd}); f.Cwd != home || f.Project.Identity != "directory:"+home {
			t.Errorf("%s is %s, of %s", cwd, f.Cwd, f.Project.Identity)
		}
	}
	put(t, filepath.Join(home, "sub/file"), "")
	if f := openAt(t, d.Client(), daemon.Args{"cwd": "sub", "project_root": "~"}); f.Cwd != filepath.Join(home, "sub") || f.Project.Root != home || f.Project.Identity != "directory:"+home {
		t.Errorf("below a project root: %+v", f.Project)
	}
}

// TestOpenAgain opens a checkout that is left alone until the daemon needs no git for it, and then changes it.
func TestOpenAgain(t *testing.T) {
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal("git is needed")
	}
	bin, dir := realDir(t), gitProject(t)
	put(t, filepath.Join(bin, "git"), "#!/bin/sh\necho \"$@\" >>"+bin+"/asked\nexec "+real+" \"$@\"\n")
	if err := os.Chmod(filepath.Join(bin, "git"), 0o755); err != nil {
		t.Fatal(err)
	}
	client := daemon.Start(t, daemon.Options{Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}}).Client()
	open := func() (dirty bool, status int) {
		t.Helper()
		before := strings.Count(text(t, filepath.Join(bin, "asked")), " status ")
		f := openAt(t, client, daemon.Args{"cwd": dir})
		for f.Repository == nil || f.Repository.Dirty == nil { // on a machine that is busy with much else, git may need more than its time
			f = openAt(t, client, daemon.Args{"cwd": dir})
		}
		return *f.Repository.Dirty, strings.Count(text(t, filepath.Join(bin, "asked")), " status ") - before
	}
	put(t, filepath.Join(bin, "asked"), "")
	for _, want := range []bool{false, true} {
		for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			dirty, asked := open()
			if dirty != want {
				t.Fatalf("it is said to be dirty: %v", dirty)
			}
			if asked == 0 {
				break
			}
			if time.Since(began) > 2*time.Minute {
				t.Fatalf("git is asked each time:\n%s", text(t, filepath.Join(bin, "asked")))
			}
		}
		put(t, filepath.Join(dir, "README.md"), "# OMED\n")
	}
	for _, again := range []bool{false, true} {
		git(t, dir, "checkout", "--quiet", ".")
		if again {
			put(t, filepath.Join(dir, "new"), "")
		}
		if dirty, asked := open(); dirty != again || asked == 0 {
			t.Errorf("it is said to be dirty: %v, git was asked %d times", dirty, asked)
		}
	}
}

// TestOpenInGit opens every kind of repository: which share a project, and what is told of the checkout.
func TestOpenInGit(t *testing.T) {
	client := daemon.Start(t, daemon.Options{}).Client()
	main, top := gitProject(t), realDir(t)
	at := func(name string) string { return filepath.Join(top, name) }
	git(t, main, "worktree", "add", "--quiet", "-b", "other", at("tree"))
	git(t, top, "clone", "--quiet", main, "clone")
	git(t, top, "clone", "--quiet", "--bare", main, "bare.git")
	git(t, top, "clone", "--quiet", main, "detached")
	git(t, at("detached"), "checkout", "--quiet", "--detach")
	git(t, top, "init", "--quiet", "--initial-branch=trunk", "unborn")
	git(t, top, "init", "--quiet", "--initial-branch=main", "outer")
	git(t, at("outer"), "submodule", "--quiet", "add", main, "inner")
	git(t, at("outer"), "commit", "--quiet", "--message=with a submodule")
	git(t, top, "init", "--quiet", "--initial-branch=main", "untracked")
	for i := range 1500 {
		put(t, filepath.Join(at("untracked"), fmt.Sprintf("a file with a rather long name that nobody tracks %d", i)), "")
	}
	git(t, top, "clone", "--quiet", main, "locked") // another git is at work there
	put(t, filepath.Join(at("locked"), ".git/index.lock"), "")
	yes, no := true, false
	ofMain := "git:" + filepath.Join(main, ".git")
	for _, c := range []struct {
		name, cwd, root, identity string
		branch                    string // "" is none
		head                      bool
		dirty                     *bool // nil: there is no checkout
	}{
		{"a repository", main, main, ofMain, "main", true, &no},
		{"a folder in it", filepath.Join(main, "src"), main, ofMain, "main", true, &no},
		{"a worktree", at("tree"), at("tree"), ofMain, "other", true, &no},
		{"a clone", at("clone"), at("clone"), "git:" + at("clone/.git"), "main", true, &no},
		{"a bare repository", at("bare.git"), at("bare.git"), "git:" + at("bare.git"), "", false, nil},
		{"a detached head", at("detached"), at("detached"), "git:" + at("detached/.git"), "", true, &no},
		{"an unborn branch", at("unborn"), at("unborn"), "git:" + at("unborn/.git"), "trunk", false, &no},
		{"a submodule", at("outer/inner"), at("outer/inner"), "git:" + at("outer/.git/modules/inner"), "main", true, &no},
		{"around a submodule", at("outer"), at("outer"), "git:" + at("outer/.git"), "main", true, &no},
		{"many untracked files", at("untracked"), at("untracked"), "git:" + at("untracked/.git"), "main", false, &yes},
		{"a locked index", at("locked"), at("locked"), "git:" + at("locked/.git"), "main", true, &no},
	} {
		f := openAt(t, client, daemon.Args{"cwd": c.cwd})
		for range 5 { // on a machine that is busy with much else, git may need more than its time
			if f.Repository != nil && f.Repository.Dirty == nil {
				f = openAt(t, client, daemon.Args{"cwd": c.cwd})
			}
		}
		if f.Project.Identity != c.identity || f.Cwd != c.cwd {
			t.Errorf("%s: %s belongs to %+v", c.name, f.Cwd, f.Project)
		}
		if c.dirty == nil {
			if f.Repository != nil {
				t.Errorf("%s: the checkout is %+v", c.name, f.Repository)
			}
			continue
		}
		p := f.Repository
		if p == nil || p.Root != c.root || (p.Head != nil) != c.head || (p.Branch != nil) != (c.branch != "") || c.branch != "" && *p.Branch != c.branch || !reflect.DeepEqual(p.Dirty, c.dirty) {
			b, _ := json.Marshal(p)
			t.Errorf("%s: the checkout is %s", c.name, b)
		}
	}
	if !exists(filepath.Join(at("locked"), ".git/index.lock")) {
		t.Error("the lock of another git is gone")
	}
	if l := list(t, client, nil); len(l.Projects) != 9 {
		t.Errorf("%d projects, want 9: worktrees share one, clones do not", len(l.Projects))
	}
}

// TestOpenWithoutAnswerOfGit has a git that is missing, and one that does not answer: the text says what is not
// known, and nothing is made up.
func TestOpenWithoutAnswerOfGit(t *testing.T) {
	dir := gitProject(t)
	git(t, dir, "checkout", "--quiet", "--detach")
	for name, script := range map[string]string{
		"broken": "#!/bin/sh\nexit 128\n",
		"slow":   "#!/bin/sh\nprintf '# branch.oid (initial)\\0'\nexec sleep 60\n",
	} {
		bin := realDir(t)
		if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		client := daemon.Start(t, daemon.Options{Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}}).Client()
		r := client.OK(t, "workspace_open", daemon.Args{"cwd": dir})
		line, _, _ := strings.Cut(r.Text(), "\n")
		var f openedFields
		decodeInto(t, r.Structured, &f)
		if f.Repository == nil || f.Repository.Dirty != nil || f.Repository.Note == "" || !strings.Contains(line, f.Repository.Note) || strings.Contains(line, "detached") {
			t.Errorf("%s: %+v, and the text says %q", name, f.Repository, line)
		}
	}
}

// TestOpenIsRefused has every code of workspace_open. A refused call makes no thread.
func TestOpenIsRefused(t *testing.T) {
	client := daemon.Start(t, daemon.Options{}).Client()
	dir, elsewhere := gitProject(t), realDir(t)
	here, there := openAt(t, client, daemon.Args{"cwd": dir}), openAt(t, client, daemon.Args{"cwd": elsewhere})
	nowhere := filepath.Join(elsewhere, "none")
	link := filepath.Join(elsewhere, "link")
	if err := os.Symlink(nowhere, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code string
		args daemon.Args
	}{
		{"INVALID_WORKSPACE", daemon.Args{"cwd": nowhere}},
		{"INVALID_WORKSPACE", daemon.Args{"cwd": filepath.Join(dir, "README.md")}},
		{"INVALID_WORKSPACE", daemon.Args{"cwd": link}},
		{"INVALID_PROJECT_ROOT", daemon.Args{"cwd": dir, "project_root": elsewhere}},
		{"INVALID_PROJECT_ROOT", daemon.Args{"cwd": dir, "project_root": dir + "-not"}},
		{"PROJECT_NOT_FOUND", daemon.Args{"cwd": dir, "project_id": here.ThreadID}},
		{"THREAD_NOT_FOUND", daemon.Args{"thread_id": here.ProjectID}},
		{"THREAD_CONFLICT", daemon.Args{"thread_id": here.ThreadID, "cwd": elsewhere}},
		{"THREAD_CONFLICT", daemon.Args{"thread_id": here.ThreadID, "project_id": there.ProjectID}},
	} {
		r := client.Fails(t, c.code, "workspace_open", c.args)
		if r.Text() == "" || r.String("reason") == "" || r.Structured["effects_may_have_occurred"] == true {
			t.Errorf("%s: %s", c.code, r.Raw)
		}
	}
	for _, args := range []daemon.Args{
		{"thread_id": here.ThreadID},
		{"thread_id": here.ThreadID, "cwd": dir, "project_id": here.ProjectID, "title": "ignored"},
		{"thread_id": here.ThreadID, "project_root": dir},
	} {
		if f := openAt(t, client, args); f.WorkspaceID != here.WorkspaceID || f.ThreadID != here.ThreadID || f.Thread.Title != "Untitled thread" {
			t.Errorf("resumed with %v: %+v", args, f)
		}
	}
	if r := client.OK(t, "workspace_list", nil); r.Structured["threads_total"] != float64(2) {
		t.Errorf("%v threads are known", r.Structured["threads_total"])
	}
	client.OK(t, "workspace_close", daemon.Args{"workspace_id": here.WorkspaceID})
	if f := openAt(t, client, daemon.Args{"thread_id": here.ThreadID}); f.WorkspaceID == here.WorkspaceID || f.Cwd != dir {
		t.Errorf("resumed after a close: %+v", f)
	}
}

// TestWorkspaceLimit has 64 workspaces, first idle and then busy. What is just being opened is never taken away
// again, and a call that is refused leaves nothing.
func TestWorkspaceLimit(t *testing.T) {
	const most = 64
	client := daemon.Start(t, daemon.Options{}).Client()
	dir := realDir(t)
	var wg sync.WaitGroup
	for range 2 * most {
		wg.Go(func() {
			if r := client.Must(t, "workspace_open", daemon.Args{"cwd": dir}); r.IsError && r.Code() != "WORKSPACE_LIMIT" {
				t.Errorf("one of many at once: %s", r.Raw)
			}
		})
	}
	wg.Wait()
	eventually(t, "at most 64 workspaces are open", func() bool { return len(list(t, client, nil).Handles) <= most })
	for i, h := range list(t, client, nil).Handles {
		wg.Go(func() {
			client.OK(t, "bash", daemon.Args{"workspace_id": h.ID, "request_key": fmt.Sprint(i), "command": "sleep 300", "wait_seconds": 1})
		})
	}
	wg.Wait()
	busy := list(t, client, nil).Handles
	for i := len(busy); i < most; i++ { // fewer are open if many were refused
		id := client.Open(t, dir)
		client.OK(t, "bash", daemon.Args{"workspace_id": id, "request_key": "k", "command": "sleep 300", "wait_seconds": 1})
	}
	before := client.OK(t, "workspace_list", nil).Structured["threads_total"]
	r := client.Fails(t, "WORKSPACE_LIMIT", "workspace_open", daemon.Args{"cwd": dir})
	if after := client.OK(t, "workspace_list", nil); after.Structured["threads_total"] != before || len(list(t, client, nil).Handles) != most || r.Structured["effects_may_have_occurred"] == true {
		t.Errorf("%v threads before, %v after; refused with %s", before, after.Structured["threads_total"], r.Raw)
	}
	old := busy[0]
	if f := openAt(t, client, daemon.Args{"thread_id": old.ThreadID}); f.WorkspaceID != old.ID {
		t.Errorf("an open thread gives %s, not %s", f.WorkspaceID, old.ID)
	}
	client.OK(t, "workspace_close", daemon.Args{"workspace_id": old.ID})
	client.Open(t, dir)
}
