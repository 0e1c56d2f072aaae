package registry

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
)

// Events are the core/v1 kind of Kubernetes, because that is what kubectl's describe, events and get ask for. They
// are hints: what lasts is in the status of the object that they are about. So they live in memory, and a call
// never waits for one to reach the disk.

// maxEventMessage is the longest message of an event, in bytes, as in Kubernetes.
const maxEventMessage = 1024

// buildEvents makes the resource of events.
func buildEvents(scheme *runtime.Scheme, open OpenFunc) (*Resource, error) {
	group := corev1.Resource("events")
	backend := Backend{
		NewFunc:       func() runtime.Object { return &corev1.Event{} },
		NewListFunc:   func() runtime.Object { return &corev1.EventList{} },
		GroupResource: group, ResourcePrefix: "/events",
		Volatile: func(runtime.Object) bool { return true },
	}
	s := eventStrategy{scheme, names.SimpleNameGenerator}
	store := &genericregistry.Store{
		NewFunc: backend.NewFunc, NewListFunc: backend.NewListFunc,
		DefaultQualifiedResource: group, SingularQualifiedResource: corev1.Resource("event"),
		CreateStrategy: s, UpdateStrategy: s, DeleteStrategy: s,
		TableConvertor: eventTable{now: time.Now},
	}
	codec := serializer.NewCodecFactory(scheme).LegacyCodec(corev1.SchemeGroupVersion)
	err := store.CompleteWithOptions(&generic.StoreOptions{
		RESTOptions: restOptions{open: open, backend: backend, codec: codec}, AttrFunc: eventAttributes,
	})
	if err != nil {
		return nil, fmt.Errorf("store of events: %w", err)
	}
	gvk := corev1.SchemeGroupVersion.WithKind("Event")
	var selectable []string
	for name := range eventFields(&corev1.Event{}) {
		selectable = append(selectable, name)
	}
	if err := addFieldLabels(scheme, gvk, selectable); err != nil {
		return nil, err
	}
	return &Resource{GVK: gvk, GVR: corev1.SchemeGroupVersion.WithResource("events"), Main: &REST{Store: store, shortNames: []string{"ev"}}}, nil
}

// eventStrategy implements the REST strategies of events.
type eventStrategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

var _ interface {
	rest.RESTCreateUpdateStrategy
	rest.RESTDeleteStrategy
} = eventStrategy{}

func (eventStrategy) NamespaceScoped() bool                                            { return true }
func (eventStrategy) AllowCreateOnUpdate(context.Context) bool                         { return false }
func (eventStrategy) AllowUnconditionalUpdate(context.Context) bool                    { return true }
func (eventStrategy) Canonicalize(runtime.Object)                                      {}
func (eventStrategy) PrepareForCreate(context.Context, runtime.Object)                 {}
func (eventStrategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}
func (eventStrategy) WarningsOnCreate(context.Context, runtime.Object) []string        { return nil }
func (eventStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (eventStrategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validateEvent(obj.(*corev1.Event))
}

func (eventStrategy) ValidateUpdate(_ context.Context, obj, _ runtime.Object) field.ErrorList {
	return validateEvent(obj.(*corev1.Event))
}

func validateEvent(e *corev1.Event) (errs field.ErrorList) {
	if e.Namespace != e.InvolvedObject.Namespace {
		errs = append(errs, field.Invalid(field.NewPath("involvedObject", "namespace"), e.InvolvedObject.Namespace, "must be the event's own namespace"))
	}
	if e.Reason == "" {
		errs = append(errs, field.Required(field.NewPath("reason"), ""))
	}
	if len(e.Message) > maxEventMessage {
		errs = append(errs, field.TooLong(field.NewPath("message"), "", maxEventMessage))
	}
	if kinds := []string{corev1.EventTypeNormal, corev1.EventTypeWarning}; e.Type != kinds[0] && e.Type != kinds[1] {
		errs = append(errs, field.NotSupported(field.NewPath("type"), e.Type, kinds))
	}
	return errs
}

func eventAttributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	e := obj.(*corev1.Event)
	set := eventFields(e)
	set["metadata.name"], set["metadata.namespace"] = e.Name, e.Namespace
	return e.Labels, set, nil
}

// eventFields are what events can be selected by, as in Kubernetes.
func eventFields(e *corev1.Event) fields.Set {
	o, source := e.InvolvedObject, e.Source.Component
	if source == "" {
		source = e.ReportingController
	}
	return fields.Set{
		"involvedObject.kind": o.Kind, "involvedObject.namespace": o.Namespace, "involvedObject.name": o.Name,
		"involvedObject.uid": string(o.UID), "involvedObject.apiVersion": o.APIVersion,
		"involvedObject.resourceVersion": o.ResourceVersion, "involvedObject.fieldPath": o.FieldPath,
		"reason": e.Reason, "reportingComponent": e.ReportingController, "source": source, "type": e.Type,
	}
}

// eventTable renders events in the columns that Kubernetes has for them.
type eventTable struct{ now func() time.Time }

var eventColumns = []metav1.TableColumnDefinition{
	{Name: "Last Seen", Type: "string", Description: corev1.Event{}.SwaggerDoc()["lastTimestamp"]},
	{Name: "Type", Type: "string", Description: corev1.Event{}.SwaggerDoc()["type"]},
	{Name: "Reason", Type: "string", Description: corev1.Event{}.SwaggerDoc()["reason"]},
	{Name: "Object", Type: "string", Description: corev1.Event{}.SwaggerDoc()["involvedObject"]},
	{Name: "Source", Type: "string", Priority: 1, Description: corev1.Event{}.SwaggerDoc()["source"]},
	{Name: "Message", Type: "string", Description: corev1.Event{}.SwaggerDoc()["message"]},
	{Name: "First Seen", Type: "string", Priority: 1, Description: corev1.Event{}.SwaggerDoc()["firstTimestamp"]},
	{Name: "Count", Type: "integer", Priority: 1, Description: corev1.Event{}.SwaggerDoc()["count"]},
	{Name: "Name", Type: "string", Priority: 1, Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
}

// ConvertToTable renders an event or a list of them.
func (t eventTable) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		table.ColumnDefinitions = eventColumns
	}
	row := func(obj runtime.Object) error {
		e, ok := obj.(*corev1.Event)
		if !ok {
			return fmt.Errorf("%T is not an event", obj)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Object: runtime.RawExtension{Object: e}, Cells: t.cells(e)})
		return nil
	}
	if list, ok := obj.(*corev1.EventList); ok {
		table.ResourceVersion, table.Continue = list.ResourceVersion, list.Continue
		return table, meta.EachListItem(list, row)
	}
	if m, ok := obj.(metav1.Common); ok {
		table.ResourceVersion = m.GetResourceVersion()
	}
	return table, row(obj)
}

func (t eventTable) cells(e *corev1.Event) []any {
	first, last, count := e.FirstTimestamp.Time, e.LastTimestamp.Time, max(e.Count, 1)
	if first.IsZero() { // written by the newer recorder
		first, last = e.EventTime.Time, e.EventTime.Time
	}
	if s := e.Series; s != nil {
		last, count = s.LastObservedTime.Time, s.Count
	}
	object := strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name
	return []any{t.since(last), e.Type, e.Reason, object, eventFields(e)["source"], strings.TrimSpace(e.Message), t.since(first), int64(count), e.Name}
}

func (t eventTable) since(at time.Time) string {
	if at.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(t.now().Sub(at))
}
