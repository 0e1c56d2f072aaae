package operation

import (
	"slices"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/engine/process"
)

func TestLasting(t *testing.T) {
	young := func(pid int) process.Info { return process.Info{PID: pid, StartTime: "s", Age: time.Second} }
	old := func(pid int) process.Info { return process.Info{PID: pid, StartTime: "s", Age: time.Minute} }
	listed := []v1alpha1.Process{{PID: 1, StartTime: "s"}, {PID: 2, StartTime: "another"}}
	for _, c := range []struct {
		name string
		left []process.Info
		want []int
	}{
		{"nothing", nil, nil},
		{"what is listed stays, what came just now waits", []process.Info{young(1), young(3), old(4)}, []int{1, 4}},
		{"a reused number is another process", []process.Info{young(2), old(4)}, []int{4}},
		{"better the young ones than nothing", []process.Info{young(3), young(5)}, []int{3, 5}},
	} {
		var got []int
		for _, i := range lasting(c.left, listed) {
			got = append(got, i.PID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
