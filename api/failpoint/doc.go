// Package failpoint lets the crash harness (hack/crash) end the daemon at a named step, and the benchmark see when a
// call comes to each.
//
// In an ordinary build Hit is empty and costs nothing. With the build tag hops it notes the time in a file, for
// hack/bench trace. With the build tag failpoints the variable RIG_BRIDGE_FAILPOINT chooses what happens:
//
//	name      the process kills itself with SIGKILL when it comes to the step for the first time
//	name:n    ... for the n-th time, counted from 1
//	name=FILE it waits at the step until FILE exists, each time
//
// Both sides of the daemon may import it; engines are handed Hit as a function.
package failpoint

// The steps of a call with a retry key, in order. Each is passed once for a call that runs.
const (
	BeforeClaim    = "before-claim"    // the arguments are in memory, the operation is not made
	Claimed        = "claimed"         // the operation is made
	BeforeRunning  = "before-running"  // the attempt is not recorded
	Running        = "running"         // the attempt is recorded, perhaps not on the disk
	RunningDurable = "running-durable" // the record of the attempt is on the disk
	BeforeEffect   = "before-effect"   // the next thing is the effect
	TempWritten    = "temp-written"    // files: the temporary file is complete and on the disk
	BeforeRename   = "before-rename"   // files: the target was compared once more
	Renamed        = "renamed"         // files: the target is replaced, the folder not on the disk
	CommandStarted = "command-started" // commands: the shell runs
	CommandEnded   = "command-ended"   // commands: its outcome is known
	RunMade        = "run-made"        // run_start: the run exists and is not working yet
	HandoffMade    = "handoff-made"    // work_handoff: the handoff exists, its run goes on
	RunFinished    = "run-finished"    // work_handoff: the run is finished
	BeforeTerminal = "before-terminal" // the outcome is not recorded
	Terminal       = "terminal"        // the outcome is recorded, perhaps not on the disk
	BeforeAnswer   = "before-answer"   // the outcome is on the disk, nobody was told
)

// More steps of a call, for its trace. Calls without a retry key pass them, too, and some steps come more than once.
const (
	Received    = "received"    // the head of a request is there
	Parsed      = "parsed"      // its body is read and understood
	Validated   = "validated"   // its arguments are valid and canonical
	Made        = "made"        // the operation of a tool without a retry key is made
	Reconciling = "reconciling" // a worker has the operation
	Working     = "working"     // the runner has begun
	Prepared    = "prepared"    // the change is planned
	Worked      = "worked"      // a read-only tool has its result
	Told        = "told"        // who waits has the outcome
	Encoded     = "encoded"     // the answer is encoded
	Written     = "written"     // and written
)

// The steps of a handoff's notification, in order.
const (
	Sending        = "sending"         // it is recorded that it is being sent, perhaps not on the disk
	SendingDurable = "sending-durable" // the record is on the disk, nothing is sent
	Sent           = "sent"            // the desktop has answered, that is not recorded
)
