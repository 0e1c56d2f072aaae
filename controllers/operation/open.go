package operation

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/project"
	"github.com/rigbridge/rigbridge/controllers/engine/skills"
)

// openWait is how long an opened workspace may take to become ready.
const openWait = 10 * time.Second

// opening is one call of workspace_open.
type opening struct {
	r  *Reconciler
	op *v1alpha1.Operation

	Cwd         string `json:"cwd"`
	ProjectRoot string `json:"project_root"`
	ProjectID   string `json:"project_id"`
	ThreadID    string `json:"thread_id"`
	Title       string `json:"title"`

	found     project.Project
	project   *v1alpha1.Project
	thread    *v1alpha1.Thread
	workspace *v1alpha1.Workspace
	made      []client.Object // by this call, and nobody has been told of it
	checkout  <-chan *project.Checkout
}

// open admits a call of workspace_open. It makes objects under names that a repetition finds again, and what it
// cannot name so (thread, workspace) nobody has been told of if the answer is lost.
func (r *Reconciler) open(ctx context.Context, s *scope) error {
	arguments, ok := r.Exchange.Arguments(s.op.Spec.PayloadRef)
	if !ok {
		return r.settle(ctx, s, refused(v1alpha1.ReasonNotStarted, "The arguments of this call are gone, by a restart of Rig Bridge; call again."))
	}
	o := &opening{r: r, op: s.op}
	s.task = newTask(s.op, "")
	r.tasks.put(s.task)
	t := s.task
	r.Runner.Go(t.object, func() {
		if err := json.Unmarshal(arguments, o); err != nil {
			t.finish(failed(fmt.Errorf("decode the arguments: %w", err), ""))
			return
		}
		t.finish(o.run(t.ctx))
	})
	return nil
}

// run takes the steps in the contract's order.
func (o *opening) run(ctx context.Context) *outcome {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // if it is refused, the checkout is of no interest
	for _, step := range []func(context.Context) (*outcome, error){
		o.findThread, o.resolve, o.findProject, o.makeThread, o.makeWorkspace, o.awaitReady,
	} {
		refusal, err := step(ctx)
		if err != nil {
			return failed(err, "")
		}
		if refusal != nil {
			return refusal
		}
	}
	return o.answer(ctx)
}

func (o *opening) findThread(ctx context.Context) (*outcome, error) {
	if o.ThreadID == "" {
		return nil, nil
	}
	o.thread = &v1alpha1.Thread{}
	err := o.r.Live.Get(ctx, o.key(o.ThreadID), o.thread)
	if apierrors.IsNotFound(err) || err == nil && !o.thread.DeletionTimestamp.IsZero() {
		return refused(v1alpha1.ReasonThreadNotFound, "There is no thread "+clip(o.ThreadID)+". See workspace_list, or leave thread_id out to begin a new one."), nil
	}
	return nil, err
}

// resolve turns the directory into a canonical one and finds its project.
func (o *opening) resolve(context.Context) (*outcome, error) {
	env := o.r.Env
	env.Cwd = env.Home
	arg := o.Cwd
	switch {
	case arg == "" && o.thread != nil:
		arg = o.thread.Spec.Cwd
	case arg == "":
		arg = env.Home
	}
	cwd, refusal := directory(env, arg)
	if refusal != nil {
		return refusal, nil
	}
	o.Cwd = cwd
	o.found = project.Discover(cwd)
	if o.ProjectRoot == "" {
		return nil, nil
	}
	root, refusal := directory(env, o.ProjectRoot)
	if refusal != nil || root != "/" && cwd != root && !strings.HasPrefix(cwd, root+"/") {
		return refused(v1alpha1.ReasonInvalidProjectRoot, fmt.Sprintf("%s is not inside the project root %s. Give a root that contains it, or leave project_root out.", clip(cwd), clip(o.ProjectRoot))), nil
	}
	if root != o.found.Root {
		o.found = project.Project{Root: root, Identity: "directory:" + root, Git: o.found.Git && strings.HasPrefix(root+"/", o.found.Root+"/")}
	}
	return nil, nil
}

func directory(env engine.Env, arg string) (string, *outcome) {
	refusal := func(why string) *outcome {
		return refused(v1alpha1.ReasonInvalidWorkspace, fmt.Sprintf("%s %s. Give the path of an existing directory.", clip(arg), why))
	}
	path, err := env.ResolvePath(arg)
	if err != nil {
		return "", refusal("cannot be used as a path")
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", refusal("does not exist or cannot be entered")
	}
	if st, err := os.Stat(real); err != nil || !st.IsDir() {
		return "", refusal("is not a directory")
	}
	return real, nil
}

// findProject takes the project that was named, the thread's, or the directory's own, which is made if new.
func (o *opening) findProject(ctx context.Context) (*outcome, error) {
	id := o.ProjectID
	if id == "" && o.thread != nil {
		id = o.thread.Spec.ProjectRef.Name
	}
	o.project = &v1alpha1.Project{}
	if id != "" {
		err := o.r.Live.Get(ctx, o.key(id), o.project)
		if apierrors.IsNotFound(err) || err == nil && !o.project.DeletionTimestamp.IsZero() {
			return refused(v1alpha1.ReasonProjectNotFound, "There is no project "+clip(id)+". See workspace_list, or leave project_id out."), nil
		}
		return nil, err
	}
	p := &v1alpha1.Project{ObjectMeta: o.meta(uuid.NewSHA1(uuid.NameSpaceURL, []byte(o.found.Identity)).String()),
		Spec: v1alpha1.ProjectSpec{Root: o.found.Root, Identity: o.found.Identity}}
	for {
		o.project = p.DeepCopy()
		err := o.r.Client.Create(ctx, o.project)
		if apierrors.IsAlreadyExists(err) {
			err = o.r.Live.Get(ctx, client.ObjectKeyFromObject(p), o.project)
		}
		if err == nil && o.project.DeletionTimestamp.IsZero() || client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err := pause(ctx); err != nil { // it is going; then it is made anew
			return nil, err
		}
	}
}

func (o *opening) makeThread(ctx context.Context) (*outcome, error) {
	if o.thread != nil {
		switch {
		case o.thread.Spec.Cwd != o.Cwd:
			return refused(v1alpha1.ReasonThreadConflict, fmt.Sprintf("The thread belongs to %s. Leave cwd out to resume it there, or leave thread_id out to begin a new thread.", clip(o.thread.Spec.Cwd))), nil
		case o.thread.Spec.ProjectRef.Name != o.project.Name:
			return refused(v1alpha1.ReasonThreadConflict, "The thread belongs to another project. Leave project_id out to resume it."), nil
		}
		return nil, nil
	}
	o.look(ctx) // a new thread has no workspace whose closing must be awaited
	o.thread = &v1alpha1.Thread{ObjectMeta: o.meta(o.r.NewID(), v1alpha1.OwnedBy(o.project)),
		Spec: v1alpha1.ThreadSpec{ProjectRef: v1alpha1.LocalReference{Name: o.project.Name}, Cwd: o.Cwd, Title: strings.TrimSpace(o.Title)}}
	return nil, o.make(ctx, o.thread)
}

// look begins to find out about the checkout, which goes on beside the steps that follow.
func (o *opening) look(ctx context.Context) {
	checkout := make(chan *project.Checkout, 1)
	o.checkout = checkout
	go func() { checkout <- project.State(ctx, o.found) }()
}

func (o *opening) make(ctx context.Context, obj client.Object) error {
	if err := o.r.Client.Create(ctx, obj); err != nil {
		return fmt.Errorf("make %T: %w", obj, err)
	}
	o.made = append(o.made, obj)
	return nil
}

// unmake removes what this call has made, because it is refused.
func (o *opening) unmake(ctx context.Context) error {
	for _, obj := range o.made {
		if err := o.r.Client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove %T, which is of no use: %w", obj, err)
		}
	}
	return nil
}

// makeWorkspace takes the thread's open workspace or makes one. Simultaneous calls for one thread share it.
func (o *opening) makeWorkspace(ctx context.Context) (*outcome, error) {
	release, _, err := o.r.Locks.Acquire(ctx, "thread "+o.thread.Name, o.op.Name)
	if err != nil {
		return nil, err
	}
	defer release()
	for {
		open := &v1alpha1.WorkspaceList{}
		err := o.r.Live.List(ctx, open, client.InNamespace(o.op.Namespace), client.MatchingFields{"spec.threadRef.name": o.thread.Name})
		if err != nil {
			return nil, fmt.Errorf("list the thread's workspaces: %w", err)
		}
		if len(open.Items) == 0 {
			break
		}
		if ws := &open.Items[0]; ws.DeletionTimestamp.IsZero() {
			o.workspace = ws
			return nil, nil
		}
		if err := pause(ctx); err != nil { // it is closing
			return nil, err
		}
	}
	o.workspace = &v1alpha1.Workspace{ObjectMeta: o.meta(o.r.NewID(), v1alpha1.OwnedBy(o.thread)),
		Spec: v1alpha1.WorkspaceSpec{ThreadRef: v1alpha1.LocalReference{Name: o.thread.Name}, Cwd: o.Cwd}}
	return nil, o.make(ctx, o.workspace)
}

// awaitReady waits for the Workspace reconciler's word.
func (o *opening) awaitReady(ctx context.Context) (*outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, openWait)
	defer cancel()
	key := client.ObjectKeyFromObject(o.workspace)
	delay := wait.Backoff{Duration: 500 * time.Microsecond, Factor: 1.5, Cap: 50 * time.Millisecond, Steps: 1000}.DelayFunc()
	gone := false
	err := delay.Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		err := o.r.Live.Get(ctx, key, o.workspace)
		gone = apierrors.IsNotFound(err) || err == nil && !o.workspace.DeletionTimestamp.IsZero()
		return gone || o.judged(), client.IgnoreNotFound(err)
	})
	if err != nil {
		return nil, err
	}
	if !gone && o.workspace.Ready() {
		o.r.Used(o.workspace.Name)
		return nil, nil
	}
	if err := o.unmake(ctx); err != nil {
		return nil, err
	}
	if gone {
		return refused(v1alpha1.ReasonWorkspaceLimit, "The workspace was closed again at once, to make room for others that were opened. Call again."), nil
	}
	if c := apimeta.FindStatusCondition(o.workspace.Status.Conditions, v1alpha1.ConditionReady); c.Reason == v1alpha1.ReasonWorkspaceLimit {
		return refused(v1alpha1.ReasonWorkspaceLimit, c.Message), nil
	}
	return refused(v1alpha1.ReasonInvalidWorkspace, clip(o.Cwd)+" is not there any more. Give the path of an existing directory."), nil
}

func (o *opening) judged() bool {
	c := apimeta.FindStatusCondition(o.workspace.Status.Conditions, v1alpha1.ConditionReady)
	return c != nil && c.ObservedGeneration == o.workspace.Generation
}

func (o *opening) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: o.op.Namespace, Name: name}
}

func (o *opening) meta(name string, owners ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.op.Namespace, Name: name, OwnerReferences: owners}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(10 * time.Millisecond):
		return nil
	}
}

const handoffReminder = "Right before every final reply, call work_handoff with a reason and a short summary, after your calls have finished."

// reference is the version of the Pi package whose tools ours behave like.
const reference = "0.85.1"

// answer gathers what the assistant should know of the directory.
func (o *opening) answer(ctx context.Context) *outcome {
	env := o.r.Env
	env.Cwd = o.Cwd
	found := make(chan skills.Set, 1)
	go func() { found <- skills.Discover(env) }()
	if o.checkout == nil {
		o.look(ctx)
	}
	files := skills.InstructionFiles(env)
	set, checkout := <-found, <-o.checkout
	definitions, more := set.Definitions()
	contextBlock, catalogue := skills.ContextBlock(files), strings.TrimLeft(set.Block(), "\n")

	parts := []string{o.readiness(checkout), handoffReminder}
	for _, block := range []string{contextBlock, catalogue} {
		if block != "" {
			parts = append(parts, block)
		}
	}
	fields := map[string]any{
		"workspace_id": o.workspace.Name, "project_id": o.project.Name, "thread_id": o.thread.Name,
		"project": o.projectFields(), "thread": o.threadFields(),
		"cwd": o.Cwd, "hostname": hostname(), "home": env.Home, "account": o.workspace.Status.Account,
		"uid": os.Getuid(), "os": runtime.GOOS, "arch": runtime.GOARCH, "shell": "bash",
		"repository": checkout, "instruction_files": nonNil(files), "instructions": filePaths(files),
		"skill_definitions": nonNil(definitions), "skills": skillPaths(definitions), "skills_truncated": more,
		"project_context": contextBlock, "skills_prompt": catalogue,
		"access":           map[string]any{"profile": "full", "cwd_is_sandbox": false, "elevation": "none"},
		"context_note":     "Instruction files and skills are what the directory holds now; they are read again at each workspace_open.",
		"pi":               reference,
		"models_for_tools": false,
	}
	return succeeded(&engine.Result{Text: strings.Join(parts, "\n\n")}, fields)
}

func (o *opening) readiness(c *project.Checkout) string {
	text := fmt.Sprintf("Workspace ready: project %s, thread %s, in %s", strconv.Quote(o.project.Spec.DisplayName), strconv.Quote(o.thread.Spec.Title), o.Cwd)
	if c != nil {
		text += " (git"
		switch {
		case c.Branch != nil:
			text += ", branch " + *c.Branch
		case c.Note == "":
			text += ", detached"
		}
		if c.Dirty != nil && *c.Dirty {
			text += ", with uncommitted changes"
		}
		if c.Note != "" {
			text += "; " + c.Note
		}
		text += ")"
	}
	return text + ". workspace_id: " + o.workspace.Name
}

func (o *opening) projectFields() map[string]any {
	p := o.project
	return map[string]any{"id": p.Name, "identity": p.Spec.Identity, "name": p.Spec.DisplayName, "root": p.Spec.Root,
		"createdAt": p.CreationTimestamp.UnixMilli(), "lastUsed": o.r.Now().UnixMilli(), "desktopNotifications": p.Spec.Notifications.Desktop}
}

func (o *opening) threadFields() map[string]any {
	t := o.thread
	return map[string]any{"id": t.Name, "projectId": t.Spec.ProjectRef.Name, "title": t.Spec.Title, "cwd": t.Spec.Cwd,
		"createdAt": t.CreationTimestamp.UnixMilli(), "lastUsed": o.r.Now().UnixMilli()}
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// nonNil makes an absent list an empty one for JSON.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func filePaths(files []skills.File) []string {
	paths := make([]string, 0, len(files))
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	return paths
}

func skillPaths(all []skills.Definition) []string {
	paths := make([]string, 0, len(all))
	for _, d := range all {
		paths = append(paths, d.Path)
	}
	return paths
}
