package registry

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// The kinds, in the order in which they are served.
var (
	projects = Kind[v1alpha1.Project, *v1alpha1.Project]{
		Plural: "projects", Singular: "project", Owner: true,
		NewList:   func() runtime.Object { return &v1alpha1.ProjectList{} },
		Spec:      func(o *v1alpha1.Project) any { return &o.Spec },
		SetSpec:   func(to, from *v1alpha1.Project) { to.Spec = from.Spec },
		SetStatus: func(to, from *v1alpha1.Project) { to.Status = from.Status },
		Default:   (*v1alpha1.Project).Default,
		Validate:  v1alpha1.ValidateProject, ValidateUpdate: v1alpha1.ValidateProjectUpdate,
		Fields: func(o *v1alpha1.Project) fields.Set { return fields.Set{"spec.identity": o.Spec.Identity} },
	}
	threads = Kind[v1alpha1.Thread, *v1alpha1.Thread]{
		Plural: "threads", Singular: "thread", Owner: true,
		NewList:   func() runtime.Object { return &v1alpha1.ThreadList{} },
		Spec:      func(o *v1alpha1.Thread) any { return &o.Spec },
		SetSpec:   func(to, from *v1alpha1.Thread) { to.Spec = from.Spec },
		SetStatus: func(to, from *v1alpha1.Thread) { to.Status = from.Status },
		Default:   (*v1alpha1.Thread).Default,
		Validate:  v1alpha1.ValidateThread, ValidateUpdate: v1alpha1.ValidateThreadUpdate,
		Fields: func(o *v1alpha1.Thread) fields.Set {
			return fields.Set{"spec.projectRef.name": o.Spec.ProjectRef.Name}
		},
	}
	workspaces = Kind[v1alpha1.Workspace, *v1alpha1.Workspace]{
		Plural: "workspaces", Singular: "workspace",
		NewList:   func() runtime.Object { return &v1alpha1.WorkspaceList{} },
		Spec:      func(o *v1alpha1.Workspace) any { return &o.Spec },
		SetSpec:   func(to, from *v1alpha1.Workspace) { to.Spec = from.Spec },
		SetStatus: func(to, from *v1alpha1.Workspace) { to.Status = from.Status },
		Default:   (*v1alpha1.Workspace).Default,
		Validate:  v1alpha1.ValidateWorkspace, ValidateUpdate: v1alpha1.ValidateWorkspaceUpdate,
		Fields: func(o *v1alpha1.Workspace) fields.Set {
			return fields.Set{"spec.threadRef.name": o.Spec.ThreadRef.Name}
		},
	}
	operations = Kind[v1alpha1.Operation, *v1alpha1.Operation]{
		Plural: "operations", Singular: "operation",
		NewList:   func() runtime.Object { return &v1alpha1.OperationList{} },
		Spec:      func(o *v1alpha1.Operation) any { return &o.Spec },
		SetSpec:   func(to, from *v1alpha1.Operation) { to.Spec = from.Spec },
		SetStatus: func(to, from *v1alpha1.Operation) { to.Status = from.Status },
		Default:   holdWhileActive,
		Validate:  v1alpha1.ValidateOperation, ValidateUpdate: v1alpha1.ValidateOperationUpdate,
		Fields: operationFields, Settle: releaseWhenOver,
		Volatile: func(o *v1alpha1.Operation) bool { return !o.Spec.Tool.Keyed() },
		Dormant:  func(o *v1alpha1.Operation) bool { return !o.Active() },
	}
	runs = Kind[v1alpha1.Run, *v1alpha1.Run]{
		Plural: "runs", Singular: "run",
		NewList:   func() runtime.Object { return &v1alpha1.RunList{} },
		Spec:      func(o *v1alpha1.Run) any { return &o.Spec },
		SetSpec:   func(to, from *v1alpha1.Run) { to.Spec = from.Spec },
		SetStatus: func(to, from *v1alpha1.Run) { to.Status = from.Status },
		Validate:  v1alpha1.ValidateRun, ValidateUpdate: v1alpha1.ValidateRunUpdate,
		Fields: func(o *v1alpha1.Run) fields.Set {
			return fields.Set{"spec.threadRef.name": o.Spec.ThreadRef.Name, "status.phase": string(o.Status.Phase),
				FieldActive: strconv.FormatBool(o.Working())}
		},
		Dormant: func(o *v1alpha1.Run) bool { return !o.Working() },
	}
	handoffs = Kind[v1alpha1.Handoff, *v1alpha1.Handoff]{
		Plural: "handoffs", Singular: "handoff",
		NewList:   func() runtime.Object { return &v1alpha1.HandoffList{} },
		Spec:      func(o *v1alpha1.Handoff) any { return &o.Spec },
		SetSpec:   func(to, from *v1alpha1.Handoff) { to.Spec = from.Spec },
		SetStatus: func(to, from *v1alpha1.Handoff) { to.Status = from.Status },
		Validate:  v1alpha1.ValidateHandoff, ValidateUpdate: v1alpha1.ValidateHandoffUpdate,
		Fields: func(o *v1alpha1.Handoff) fields.Set {
			return fields.Set{"spec.threadRef.name": o.Spec.ThreadRef.Name,
				"spec.acknowledged": strconv.FormatBool(o.Spec.Acknowledged), FieldActive: strconv.FormatBool(o.Active())}
		},
		Dormant: func(o *v1alpha1.Handoff) bool { return !o.Active() },
	}
	tunnels = Kind[v1alpha1.Tunnel, *v1alpha1.Tunnel]{
		Plural: "tunnels", Singular: "tunnel",
		NewList:   func() runtime.Object { return &v1alpha1.TunnelList{} },
		Spec:      func(o *v1alpha1.Tunnel) any { return &o.Spec },
		SetSpec:   func(to, from *v1alpha1.Tunnel) { to.Spec = from.Spec },
		SetStatus: func(to, from *v1alpha1.Tunnel) { to.Status = from.Status },
		Default:   (*v1alpha1.Tunnel).Default,
		Validate:  v1alpha1.ValidateTunnel, ValidateUpdate: v1alpha1.ValidateTunnelUpdate,
	}
)

// FieldActive selects operations that are not over or left processes running, runs that are working and handoffs
// that are not read: "true" or "false". The controllers' cache holds those only.
const FieldActive = "status.active"

func operationFields(o *v1alpha1.Operation) fields.Set {
	thread := ""
	if o.Spec.ThreadRef != nil {
		thread = o.Spec.ThreadRef.Name
	}
	return fields.Set{
		"spec.threadRef.name":    thread,
		"spec.workspaceRef.name": o.Spec.WorkspaceRef.Name,
		"spec.tool":              string(o.Spec.Tool),
		"status.phase":           string(o.Status.Phase),
		FieldActive:              strconv.FormatBool(o.Active()),
	}
}

// holdWhileActive makes a durable operation survive its deletion until nothing of it runs.
func holdWhileActive(o *v1alpha1.Operation) {
	if o.Spec.Tool.Keyed() && !slices.Contains(o.Finalizers, v1alpha1.Finalizer) {
		o.Finalizers = append(o.Finalizers, v1alpha1.Finalizer)
	}
}

func releaseWhenOver(o *v1alpha1.Operation) {
	if !o.Active() {
		o.Finalizers = slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return f == v1alpha1.Finalizer })
	}
}
