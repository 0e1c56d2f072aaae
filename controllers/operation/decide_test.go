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
		{"over, processes left", observed{over: true, left: true}, actTend},
		{"the same in the life that recorded it", observed{over: true, left: true, stage: stageRecorded}, actTend},
		{"the same while the daemon ends", observed{over: true, left: true, unwanted: true}, actTend},
		{"over, what it left running is to be stopped", observed{over: true, unwanted: true, left: true, lingering: true}, actSweep},
		{"the same in the life that recorded it", observed{over: true, unwanted: true, left: true, lingering: true, stage: stageRecorded}, actSweep},
		{"attempt of an earlier life", observed{attempted: true}, actRecover},
		{"attempt of an earlier life, cancelled", observed{attempted: true, unwanted: true}, actRecover},
		{"preparing", observed{stage: stagePreparing}, actNothing},
		{"preparing, cancelled", observed{stage: stagePreparing, unwanted: true}, actStop},
		{"preparing, being stopped", observed{stage: stagePreparing, unwanted: true, stopping: true}, actNothing},
		{"preparing, waits for a file", observed{stage: stagePreparing, waiting: true}, actNoteWait},
		{"preparing, waits for a file, cancelled", observed{stage: stagePreparing, waiting: true, unwanted: true}, actStop},
		{"prepared", observed{stage: stagePrepared}, actStart},
		{"prepared, nobody noted the wait", observed{stage: stagePrepared, waiting: true}, actStart},
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
