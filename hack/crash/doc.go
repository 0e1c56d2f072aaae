// Package crash proves that a mutating call happens once or is known not to have happened, whoever dies in
// between. It has tests only; they run a daemon that is built with the tag failpoints (see api/failpoint).
//
//	failpoint_test.go   the daemon dies at each step of each tool; the table of outcomes is printed
//	kills_test.go       random kills under the load of 16 clients
//	answers_test.go     answers that get lost; clients that write to one file
//	cases_test.go       reported faults of other tools, by the letters of the bug log: A, D, E, F, N
//	damage_test.go      N3: the store's log is cut and damaged
//	stdio_test.go       F4: who leaves over stdio
//	disk_test.go        a full disk below the state directory, in a mount namespace
//	model_test.go       random calls, cancels, closes and kills against a model of the contract
//	work_test.go        the steps of run_start and work_handoff
//
// What is asserted is the world: lines of a file that commands append to, renames that the kernel reported for
// the folder, contents. An effect that was answered is there once, one that was not is there at most once.
//
// With -short or CI set the tests are brief, without they are a little longer, and with
// RIG_BRIDGE_CRASH=full they are as long as the promise says (300 kills, 200 sequences, 400 power cuts).
//
// Power loss is tested where the files are: api/storage (powerloss_test.go) for the store, cmd/rig-bridge for the
// daemon. Clock jumps (E6) are in cmd/rig-bridge too, because the clock is injected; D9 is in hack/e2e.
package crash
