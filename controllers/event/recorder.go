package event

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// component is the source of our events.
const component = "rig-bridge"

// NewRecorder returns client-go's recorder, which writes through c until stop is called, and that is when nobody
// records any more. controller-runtime's own provider of recorders speaks HTTP only.
func NewRecorder(c client.Client, log logr.Logger) (_ record.EventRecorder, stop func()) {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), log))
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(sink{ctx, c})
	return b.NewRecorder(c.Scheme(), corev1.EventSource{Component: component}).WithLogger(log), cancel
}

// sink implements record.EventSink.
type sink struct {
	ctx    context.Context
	client client.Client
}

// Create stores a new event.
func (s sink) Create(e *corev1.Event) (*corev1.Event, error) {
	made := e.DeepCopy()
	return made, s.client.Create(s.ctx, made)
}

// Update replaces an event.
func (s sink) Update(e *corev1.Event) (*corev1.Event, error) {
	made := e.DeepCopy()
	return made, s.client.Update(s.ctx, made)
}

// Patch counts an event up. The recorder's patch is a strategic one, which for an event says the same as a merge
// patch: it changes no lists.
func (s sink) Patch(e *corev1.Event, data []byte) (*corev1.Event, error) {
	made := e.DeepCopy()
	return made, s.client.Patch(s.ctx, made, client.RawPatch(types.MergePatchType, data))
}
