// Package replace puts new bytes in the place of a file, all of them or none.
//
// Write and edit prepare a Plan, which has no effect, and the Operation reconciler commits it once the plan's
// revisions are durable. A commit writes a temporary file beside the target, brings it to the disk, checks that
// the target is still what the plan was made from, renames, and brings the directory to the disk.
//
// Invariants:
//   - a reader of the target sees the old bytes or the new ones, never a part;
//   - a commit that fails leaves the old bytes and no temporary file; one that was killed leaves at most the file
//     that TempPath names, which Sweep removes;
//   - the mode with its set-id and sticky bits stays, as do owner, group, ACL and extended attributes where the
//     account may set them; a new file gets what the kernel gives it (umask, set-gid folder, default ACL);
//   - links to the target stay, because Path is canonical; hard links cannot stay, and the answer says so.
//
// Between the last check and the rename another process can still slip in a change: the system has no
// compare-and-rename. The path lock of the caller keeps our own calls apart, and a new file is created with a
// rename that refuses to replace.
//
// The revision of a file is "sha256:" and the digest of its bytes in lower-case hex, or "missing".
package replace
