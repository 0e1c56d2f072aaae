package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of all kinds.
const GroupName = "rigbridge.dev"

// Namespace is the one namespace that a local daemon uses.
const Namespace = "default"

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

var (
	// SchemeBuilder registers the kinds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds the kinds to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource returns the GroupResource of a plural name.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Project{}, &ProjectList{},
		&Thread{}, &ThreadList{},
		&Workspace{}, &WorkspaceList{},
		&Operation{}, &OperationList{},
		&Run{}, &RunList{},
		&Handoff{}, &HandoffList{},
		&Tunnel{}, &TunnelList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
