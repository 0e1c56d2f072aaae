package v1alpha1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Valid objects that tests break in one place at a time.

const noDigest = "hmac-sha256:"

func aProject() *Project {
	return &Project{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: ProjectSpec{Root: "/srv/demo", Identity: "git:/srv/demo/.git", DisplayName: "demo"}}
}

func aThread() *Thread {
	return &Thread{ObjectMeta: metav1.ObjectMeta{Name: "t"}, Spec: ThreadSpec{ProjectRef: LocalReference{Name: "p"}, Cwd: "/srv/demo", Title: "Tests"}}
}

func aWorkspace() *Workspace {
	return &Workspace{ObjectMeta: metav1.ObjectMeta{Name: "w"}, Spec: WorkspaceSpec{ThreadRef: LocalReference{Name: "t"}, Cwd: "/srv/demo"}}
}

func anOperation() *Operation {
	return &Operation{ObjectMeta: metav1.ObjectMeta{Name: OperationName("w", "key")}, Spec: OperationSpec{
		WorkspaceRef: LocalReference{Name: "w"}, ThreadRef: &LocalReference{Name: "t"}, Tool: ToolBash, RequestKey: "key",
		ArgumentsDigest: noDigest + strings.Repeat("0", 64), TimeoutSeconds: 120,
	}}
}

func aRead() *Operation {
	return &Operation{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: OperationSpec{WorkspaceRef: LocalReference{Name: "w"}, Tool: ToolRead, Paths: []string{"/srv/demo/a"}}}
}

func aRun() *Run {
	return &Run{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: RunSpec{ThreadRef: LocalReference{Name: "t"}, Title: "Tests"}}
}

func aHandoff() *Handoff {
	return &Handoff{ObjectMeta: metav1.ObjectMeta{Name: "h"}, Spec: HandoffSpec{
		ThreadRef: LocalReference{Name: "t"}, RunRef: LocalReference{Name: "r"}, Reason: HandoffCompleted, Summary: "Done."}}
}

func aTunnel() *Tunnel {
	t := &Tunnel{ObjectMeta: metav1.ObjectMeta{Name: "t"}, Spec: TunnelSpec{TunnelID: "x", Credential: CredentialReference{File: "/home/sam/key"}}}
	t.Default()
	return t
}
