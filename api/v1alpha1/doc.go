// Package v1alpha1 declares the kinds of Rig Bridge, group rigbridge.dev: what an assistant asked for (spec)
// and what became of it (status).
//
// Invariants:
//   - spec is intent and immutable except where a field says otherwise; status is observation and written by
//     its one owner through the status subresource;
//   - command text, file contents, edits, tool output, environment and credentials are never in an object;
//   - every string and list is bounded, so an object always fits the store's size cap.
//
// Conditions follow the Kubernetes API conventions; phase is a summary computed last, and nobody branches on
// it.
//
// +kubebuilder:object:generate=true
// +groupName=rigbridge.dev
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=dev.rigbridge.v1alpha1
package v1alpha1
