package lastuse

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOf(t *testing.T) {
	var times Times
	made, stored, noted := time.Unix(1_700_000_000, 0), time.Unix(1_700_000_100, 0), time.Unix(1_700_000_200, 0)
	o, status := &metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.NewTime(made)}, metav1.NewMicroTime(stored)
	for _, step := range []struct {
		do     func()
		status *metav1.MicroTime
		want   time.Time
	}{
		{func() {}, nil, made},
		{func() {}, &status, stored},
		{func() { times.Note("b", noted) }, &status, stored},
		{func() { times.Note("a", noted) }, &status, noted},
		{func() {}, nil, noted},
		{func() { times.Forget("a") }, &status, stored},
	} {
		step.do()
		if got := times.Of(o, step.status); !got.Equal(step.want) {
			t.Errorf("last used at %v, want %v", got, step.want)
		}
	}
}
