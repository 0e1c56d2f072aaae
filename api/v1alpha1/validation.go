package v1alpha1

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds of strings, in characters unless said otherwise.
const (
	maxPath    = 4096
	maxTitle   = 200
	maxName    = 255
	maxSummary = 2000
	maxKey     = 200
	maxItems   = 16

	maxPayloadRef = 36
	maxURL        = 2048 // bytes
	maxTunnelName = 63   // files are named after it
)

var (
	digestForm   = regexp.MustCompile(`^hmac-sha256:[0-9a-f]{64}$`)
	revisionForm = regexp.MustCompile(`^(missing|sha256:[0-9a-f]{64})$`)
	tunnelIDForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
)

// ValidateProject checks a new project.
func ValidateProject(p *Project) field.ErrorList {
	spec := field.NewPath("spec")
	errs := absolutePath(p.Spec.Root, spec.Child("root"))
	kind, path, _ := strings.Cut(p.Spec.Identity, ":")
	if (kind != "git" && kind != "directory") || !filepath.IsAbs(path) {
		errs = append(errs, field.Invalid(spec.Child("identity"), p.Spec.Identity,
			`must be "git:" and the git common directory, or "directory:" and a directory`))
	} else if len(path) > maxPath {
		errs = append(errs, field.TooLong(spec.Child("identity"), "", maxPath))
	}
	return append(errs, atMost(p.Spec.DisplayName, maxName, spec.Child("displayName"))...)
}

// ValidateProjectUpdate checks a change of a project.
func ValidateProjectUpdate(p, old *Project) field.ErrorList {
	return append(ValidateProject(p), immutable(p.Spec.Identity, old.Spec.Identity, field.NewPath("spec", "identity"))...)
}

// ValidateThread checks a new thread.
func ValidateThread(t *Thread) field.ErrorList {
	spec := field.NewPath("spec")
	errs := reference(t.Spec.ProjectRef, spec.Child("projectRef"))
	errs = append(errs, absolutePath(t.Spec.Cwd, spec.Child("cwd"))...)
	return append(errs, atMost(t.Spec.Title, maxTitle, spec.Child("title"))...)
}

// ValidateThreadUpdate checks a change of a thread.
func ValidateThreadUpdate(t, old *Thread) field.ErrorList {
	spec := field.NewPath("spec")
	errs := append(ValidateThread(t), immutable(t.Spec.ProjectRef, old.Spec.ProjectRef, spec.Child("projectRef"))...)
	return append(errs, immutable(t.Spec.Cwd, old.Spec.Cwd, spec.Child("cwd"))...)
}

// ValidateWorkspace checks a new workspace.
func ValidateWorkspace(w *Workspace) field.ErrorList {
	spec := field.NewPath("spec")
	return append(reference(w.Spec.ThreadRef, spec.Child("threadRef")), absolutePath(w.Spec.Cwd, spec.Child("cwd"))...)
}

// ValidateWorkspaceUpdate checks a change of a workspace.
func ValidateWorkspaceUpdate(w, old *Workspace) field.ErrorList {
	return append(ValidateWorkspace(w), immutable(w.Spec, old.Spec, field.NewPath("spec"))...)
}

// ValidateOperation checks a new operation.
func ValidateOperation(o *Operation) field.ErrorList {
	spec := field.NewPath("spec")
	s := &o.Spec
	errs := reference(s.WorkspaceRef, spec.Child("workspaceRef"))
	if s.ThreadRef != nil {
		errs = append(errs, reference(*s.ThreadRef, spec.Child("threadRef"))...)
	}
	if !s.Tool.Known() {
		errs = append(errs, field.NotSupported(spec.Child("tool"), s.Tool, knownTools))
	}
	errs = append(errs, validateKey(o, spec)...)
	if len(s.Paths) > maxItems {
		errs = append(errs, field.TooMany(spec.Child("paths"), len(s.Paths), maxItems))
	}
	for i, p := range s.Paths {
		errs = append(errs, absolutePath(p, spec.Child("paths").Index(i))...)
	}
	if s.ExpectedRevision != "" && !revisionForm.MatchString(s.ExpectedRevision) {
		errs = append(errs, field.Invalid(spec.Child("expectedRevision"), s.ExpectedRevision,
			`must be "missing", or "sha256:" and 64 hexadecimal digits`))
	}
	if s.TimeoutSeconds < 0 || s.TimeoutSeconds > 3600 {
		errs = append(errs, field.Invalid(spec.Child("timeoutSeconds"), s.TimeoutSeconds, "must be from 1 to 3600"))
	}
	errs = append(errs, atMost(s.PayloadRef, maxPayloadRef, spec.Child("payloadRef"))...)
	return append(errs, atMost(s.CancelledBy, 64, spec.Child("cancelledBy"))...)
}

var knownTools = []Tool{ToolWorkspaceOpen, ToolRead, ToolLs, ToolFind, ToolGrep, ToolSkillInfo, ToolWrite, ToolEdit, ToolBash,
	ToolRunStart, ToolWorkHandoff}

func validateKey(o *Operation, spec *field.Path) (errs field.ErrorList) {
	s := &o.Spec
	keyed := s.Tool.Keyed()
	if keyed && s.RequestKey == "" {
		return append(errs, field.Required(spec.Child("requestKey"), "a tool that changes something needs a retry key"))
	}
	errs = append(errs, atMost(s.RequestKey, maxKey, spec.Child("requestKey"))...)
	if (keyed || s.ArgumentsDigest != "") && !digestForm.MatchString(s.ArgumentsDigest) {
		errs = append(errs, field.Invalid(spec.Child("argumentsDigest"), s.ArgumentsDigest,
			`must be "hmac-sha256:" and 64 hexadecimal digits`))
	}
	if want := OperationName(s.WorkspaceRef.Name, s.RequestKey); keyed && o.Name != want {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), o.Name,
			fmt.Sprintf("must be %s, which follows from workspaceRef and requestKey", want)))
	}
	return errs
}

// ValidateOperationUpdate checks a change of an operation: only cancel and cancelledBy may change.
func ValidateOperationUpdate(o, old *Operation) field.ErrorList {
	spec := field.NewPath("spec")
	if old.Spec.Cancel && !o.Spec.Cancel {
		return field.ErrorList{field.Forbidden(spec.Child("cancel"), "cannot be taken back")}
	}
	want := old.Spec
	want.Cancel, want.CancelledBy = o.Spec.Cancel, o.Spec.CancelledBy
	if !apiequality.Semantic.DeepEqual(o.Spec, want) {
		return field.ErrorList{field.Forbidden(spec, "is immutable except cancel and cancelledBy; make another operation instead")}
	}
	return atMost(o.Spec.CancelledBy, 64, spec.Child("cancelledBy"))
}

// ValidateRun checks a new run.
func ValidateRun(r *Run) field.ErrorList {
	spec := field.NewPath("spec")
	return append(reference(r.Spec.ThreadRef, spec.Child("threadRef")), atMost(r.Spec.Title, maxTitle, spec.Child("title"))...)
}

// ValidateRunUpdate checks a change of a run.
func ValidateRunUpdate(r, old *Run) field.ErrorList {
	return append(ValidateRun(r), immutable(r.Spec.ThreadRef, old.Spec.ThreadRef, field.NewPath("spec", "threadRef"))...)
}

// ValidateHandoff checks a new handoff.
func ValidateHandoff(h *Handoff) field.ErrorList {
	spec := field.NewPath("spec")
	errs := reference(h.Spec.ThreadRef, spec.Child("threadRef"))
	errs = append(errs, reference(h.Spec.RunRef, spec.Child("runRef"))...)
	if !slices.Contains(handoffReasons, h.Spec.Reason) {
		errs = append(errs, field.NotSupported(spec.Child("reason"), h.Spec.Reason, handoffReasons))
	}
	if h.Spec.Summary == "" {
		errs = append(errs, field.Required(spec.Child("summary"), "say in a few words what the person should know"))
	}
	return append(errs, atMost(h.Spec.Summary, maxSummary, spec.Child("summary"))...)
}

var handoffReasons = []HandoffReason{HandoffCompleted, HandoffNeedsInput, HandoffBlocked, HandoffFailed, HandoffCancelled}

// ValidateHandoffUpdate checks a change of a handoff: only acknowledged may change, and only once.
func ValidateHandoffUpdate(h, old *Handoff) field.ErrorList {
	spec := field.NewPath("spec")
	if old.Spec.Acknowledged && !h.Spec.Acknowledged {
		return field.ErrorList{field.Forbidden(spec.Child("acknowledged"), "cannot be taken back")}
	}
	want := old.Spec
	want.Acknowledged = h.Spec.Acknowledged
	return immutable(h.Spec, want, spec)
}

// ValidateTunnel checks a new tunnel.
func ValidateTunnel(t *Tunnel) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if t.Spec.TunnelID == "" {
		errs = append(errs, field.Required(spec.Child("tunnelID"), "name the tunnel that the provider made"))
	}
	if len(t.Name) > maxTunnelName {
		errs = append(errs, field.TooLong(field.NewPath("metadata", "name"), "", maxTunnelName))
	}
	if tooLong := atMost(t.Spec.TunnelID, maxName, spec.Child("tunnelID")); len(tooLong) > 0 {
		errs = append(errs, tooLong...)
	} else if t.Spec.TunnelID != "" && !tunnelIDForm.MatchString(t.Spec.TunnelID) {
		errs = append(errs, field.Invalid(spec.Child("tunnelID"), t.Spec.TunnelID,
			"must be the ID as the provider shows it: letters, digits, _ . and - only"))
	}
	errs = append(errs, controlPlane(t.Spec.ControlPlaneURL, spec.Child("controlPlaneURL"))...)
	errs = append(errs, absolutePath(t.Spec.Credential.File, spec.Child("credential", "file"))...)
	if t.Spec.ClientPath != "" {
		errs = append(errs, absolutePath(t.Spec.ClientPath, spec.Child("clientPath"))...)
	}
	w, at := t.Spec.Watchdog, spec.Child("watchdog")
	if w.IntervalSeconds < 1 || w.IntervalSeconds > 3600 {
		errs = append(errs, field.Invalid(at.Child("intervalSeconds"), w.IntervalSeconds, "must be from 1 to 3600"))
	}
	if w.PollTimeoutSeconds < 10 || w.PollTimeoutSeconds > 86400 {
		errs = append(errs, field.Invalid(at.Child("pollTimeoutSeconds"), w.PollTimeoutSeconds, "must be from 10 to 86400"))
	}
	return errs
}

// controlPlane checks an address that is handed on and dialled. One that holds a password is refused unseen.
func controlPlane(address string, at *field.Path) field.ErrorList {
	if address == "" {
		return nil
	}
	if len(address) > maxURL {
		return field.ErrorList{field.TooLong(at, "", maxURL)}
	}
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Scheme != "https" && u.Scheme != "http", u.Hostname() == "":
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, "must be an address such as https://api.openai.com")}
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, "must not hold a user, a password, a query or a fragment")}
	}
	return nil
}

// ValidateTunnelUpdate checks a change of a tunnel.
func ValidateTunnelUpdate(t, _ *Tunnel) field.ErrorList { return ValidateTunnel(t) }

func absolutePath(path string, at *field.Path) field.ErrorList {
	switch {
	case path == "":
		return field.ErrorList{field.Required(at, "give an absolute path")}
	case !filepath.IsAbs(path), filepath.Clean(path) != path:
		return field.ErrorList{field.Invalid(at, path, "must be an absolute path without . or .. or double slashes")}
	case strings.IndexByte(path, 0) >= 0:
		return field.ErrorList{field.Invalid(at, path, "must not contain NUL")}
	case len(path) > maxPath:
		return field.ErrorList{field.TooLong(at, "", maxPath)}
	}
	return nil
}

func reference(ref LocalReference, at *field.Path) field.ErrorList {
	if ref.Name == "" {
		return field.ErrorList{field.Required(at.Child("name"), "")}
	}
	if why := validation.IsDNS1123Subdomain(ref.Name); len(why) > 0 {
		return field.ErrorList{field.Invalid(at.Child("name"), ref.Name, why[0])}
	}
	return nil
}

func atMost(s string, limit int, at *field.Path) field.ErrorList {
	if utf8.RuneCountInString(s) > limit {
		return field.ErrorList{field.TooLong(at, "", limit)}
	}
	return nil
}

func immutable(value, old any, at *field.Path) field.ErrorList {
	if !apiequality.Semantic.DeepEqual(value, old) {
		return field.ErrorList{field.Invalid(at, value, "is immutable")}
	}
	return nil
}
