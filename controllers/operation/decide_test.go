package operation

import (
	"testing"
)

func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name string
		in   observed
		want action
	}{
		{"new", observed{}, actAdmit},
		{"new and cancelled", observed{unwanted: true}, actCancel},
		{"over", observed{over: true}, actNothing},
		{"over and cancelled", observed{over: true, unwanted: true}, actNothing},
		{"over, what it left running is to be stopped", observed{over: true, unwanted: true, lingering: true}, actSweep},
		{"the same in the life that recorded it", observed{over: true, unwanted: true, lingering: true, stage: stageRecorded}, actSweep},
		{"attempt of an earlier life", observed{attempted: true}, actRecover},
		{"attempt of an earlier life, cancelled", observed{attempted: true, unwanted: true}, actRecover},
		{"preparing", observed{stage: stagePreparing}, actNothing},
		{"preparing, cancelled", observed{stage: stagePreparing, unwanted: true}, actStop},
		{"preparing, being stopped", observed{stage: stagePreparing, unwanted: true, stopping: true}, actNothing},
		{"prepared", observed{stage: stagePrepared}, actStart},
		{"prepared, cancelled", observed{stage: stagePrepared, unwanted: true}, actStop},
		{"running", observed{stage: stageRunning, attempted: true}, actNothing},
		{"running, cancelled", observed{stage: stageRunning, attempted: true, unwanted: true}, actStop},
		{"running with a process to note", observed{stage: stageRunning, attempted: true, process: true}, actNoteProcess},
		{"running with its process noted", observed{stage: stageRunning, attempted: true, process: true, processed: true}, actNothing},
		{"finished", observed{stage: stageFinished, attempted: true}, actRecord},
		{"finished before it was cancelled", observed{stage: stageFinished, attempted: true, unwanted: true}, actRecord},
		{"recorded, the cache is behind", observed{stage: stageRecorded, attempted: true}, actNothing},
	} {
		if got := decide(c.in); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
