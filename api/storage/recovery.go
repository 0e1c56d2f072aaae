package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"
	"golang.org/x/sync/errgroup"
)

// Report tells what Open found damaged and how it went on.
type Report struct {
	// Sentences are for people, one per finding. Empty: nothing was wrong.
	Sentences []string
	// Logs counts the log files whose end could not be read, or that could not
	// be read at all.
	Logs int
	// LostBytes counts the bytes that were cut off those files.
	LostBytes int64
	// Backup is the directory with copies of the files as they were found; empty
	// if no copy was needed.
	Backup string
}

func (r *Report) add(format string, args ...any) {
	r.Sentences = append(r.Sentences, fmt.Sprintf(format, args...))
}

// damaged says whether writes may have been lost.
func (r *Report) damaged() bool { return r.Logs > 0 }

func (r *Report) clone() Report {
	c := *r
	c.Sentences = slices.Clone(r.Sentences)
	return c
}

// examination is what a look at the directory, before badger opens it, found.
type examination struct {
	fresh   bool // there is no database yet
	mark    mark
	markErr error
}

// examine reads the whole directory under its lock. badger itself would cut a
// damaged log without a word, leave out a damaged table with a log line, end the
// process on a table with a damaged footer, and delete every table if its
// manifest were missing. So the logs are cut here, after a copy was made, and
// anything worse is a *DamagedError with the directory unchanged.
func examine(dir string, report *Report) (examination, error) {
	var found examination
	entries, err := os.ReadDir(dir)
	if err != nil {
		return found, fmt.Errorf("open the object store: %w", err)
	}
	var tables, logs []string
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".sst":
			tables = append(tables, e.Name())
		case ".mem", ".vlog":
			logs = append(logs, e.Name())
		}
	}
	_, err = os.Stat(filepath.Join(dir, badger.ManifestFilename))
	found.fresh = errors.Is(err, os.ErrNotExist) && len(tables)+len(logs) == 0
	if found.mark, found.markErr = readMark(dir); found.fresh && errors.Is(found.markErr, os.ErrNotExist) {
		return found, nil
	}
	if !found.fresh {
		if err := examineTables(dir); err != nil {
			return found, err
		}
	}
	if err := dropStatistics(dir); err != nil {
		return found, err
	}
	for _, name := range logs {
		if err := repairLog(dir, name, report); err != nil {
			return found, err
		}
	}
	return found, nil
}

// dropStatistics removes badger's count of garbage in the value log if it has
// the wrong size, which badger would not survive. It is derived from a log that
// never holds anything here, and made anew.
func dropStatistics(dir string) error {
	const name, size = "DISCARD", 1 << 20
	path := filepath.Join(dir, name)
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == size {
		return nil
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return fmt.Errorf("open the object store: %w", err)
	}
	return nil
}

// damaged builds the error for file (relative to dir) with a free name to move
// the directory to.
func damaged(dir, file string, cause error) *DamagedError {
	return &DamagedError{Dir: dir, File: file, MoveTo: freeName(dir + ".damaged"), Err: cause}
}

func freeName(stem string) string {
	for i := 1; ; i++ {
		name := stem + "-" + strconv.Itoa(i)
		if _, err := os.Lstat(name); errors.Is(err, os.ErrNotExist) {
			return name
		}
	}
}

// examineTables checks badger's manifest and every table it lists.
func examineTables(dir string) error {
	manifest, err := readManifest(dir)
	if err != nil {
		return damaged(dir, badger.ManifestFilename, err)
	}
	var check errgroup.Group
	ids := make(chan uint64, len(manifest.Tables))
	for id := range manifest.Tables {
		ids <- id
	}
	close(ids)
	for range max(2, runtime.GOMAXPROCS(0)) {
		check.Go(func() error {
			scratch := make([]byte, 0, 64<<10)
			for id := range ids {
				name := filepath.Base(table.NewFilename(id, dir))
				if err := checkTable(filepath.Join(dir, name), manifest.Tables[id].Compression, &scratch); err != nil {
					return damaged(dir, name, err)
				}
			}
			return nil
		})
	}
	return check.Wait()
}

func readManifest(dir string) (m badger.Manifest, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("badger panicked: %v", p)
		}
	}()
	f, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if err != nil {
		return m, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return m, err
	}
	m, whole, err := badger.ReplayManifestFile(f, formatVersion, badger.DefaultOptions(dir).WithLogger(nil))
	if err == nil && whole != info.Size() {
		err = fmt.Errorf("it ends inside a record at byte %d of %d", whole, info.Size())
	}
	return m, err
}

// repairLog cuts the part of a log that cannot be read, after copying the file
// to the backup directory.
func repairLog(dir, name string, report *Report) error {
	path := filepath.Join(dir, name)
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read a log of the object store: %w", err)
	}
	if len(content) == 0 { // its creation was cut short; badger would refuse it
		return os.Remove(path)
	}
	end, cause := scanLog(content)
	if cause == nil {
		return nil
	}
	if err := keepCopy(dir, name, content, report); err != nil {
		return err
	}
	lost := int64(len(bytes.TrimRight(content[end:], "\x00")))
	report.Logs++
	report.LostBytes += lost
	kept := filepath.Join(report.Backup, name)
	if end < logHeaderSize {
		report.add("The log %s could not be read at all (%v): %d bytes are missing from the store. A copy is in %s.", name, cause, lost, kept)
		err = os.Remove(path)
	} else {
		report.add("The log %s could not be read after byte %d (%v): what was written later, %d bytes, is missing from the store. A copy of the log is in %s.", name, end, cause, lost, kept)
		err = os.Truncate(path, int64(end))
	}
	if err != nil {
		return fmt.Errorf("repair a log of the object store: %w", err)
	}
	return syncPath(dir)
}

func keepCopy(dir, name string, content []byte, report *Report) error {
	if report.Backup == "" {
		backup := freeName(filepath.Join(dir, "damaged"))
		if err := os.Mkdir(backup, 0o700); err != nil {
			return fmt.Errorf("keep a copy of a damaged log: %w", err)
		}
		report.Backup = backup
	}
	// The zeros at the end are space the log had not used yet.
	content = bytes.TrimRight(content, "\x00")
	if err := writeSynced(filepath.Join(report.Backup, name), content); err != nil {
		return fmt.Errorf("keep a copy of a damaged log: %w", err)
	}
	return syncPath(report.Backup)
}

// The layout of badger's logs: a header of 20 bytes, whose first 8 name the
// encryption key, always 0 here; then entries of meta, user meta, key length,
// value length and expiry as varints, key, value and a CRC over all of it.
// Entries of one transaction carry bitTxn and are followed by one without it;
// they count only together. Unused space is zero.
const (
	logHeaderSize = 20
	bitTxn        = 1 << 6
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// scanLog returns where the readable part of a log ends, and why if anything
// but unused space follows. A cause with an end inside the header means that
// nothing of the log can be read.
func scanLog(log []byte) (end int, cause error) {
	if len(log) < logHeaderSize {
		return 0, errors.New("it is shorter than its header")
	}
	if binary.BigEndian.Uint64(log) != 0 {
		return 0, errors.New("its header is damaged")
	}
	end = logHeaderSize
	for at := end; ; {
		size, meta, err := scanEntry(log[at:])
		if err == nil && size == 0 || err != nil {
			cause = err
			break
		}
		at += size
		if meta&bitTxn == 0 {
			end = at
		}
	}
	if rest := bytes.TrimRight(log[end:], "\x00"); len(rest) == 0 {
		return end, nil
	}
	if cause == nil {
		cause = errors.New("a write was not finished")
	}
	return end, cause
}

// scanEntry returns the size and meta byte of the entry at the start of log, or
// size 0 if only unused space or nothing is there.
func scanEntry(log []byte) (size int, meta byte, err error) {
	const maxKey = 1 << 16
	if len(log) < 2 {
		return 0, 0, nil
	}
	at := 2
	var fields [3]uint64
	for i := range fields {
		v, n := binary.Uvarint(log[at:])
		if n <= 0 {
			return 0, 0, errors.New("it ends inside an entry")
		}
		fields[i], at = v, at+n
	}
	keyLen, valueLen := fields[0], fields[1]
	if keyLen == 0 {
		return 0, 0, nil
	}
	if keyLen > maxKey || valueLen > uint64(len(log)) || at+int(keyLen+valueLen)+crc32.Size > len(log) {
		return 0, 0, errors.New("it ends inside an entry")
	}
	body := at + int(keyLen+valueLen)
	if crc32.Checksum(log[:body], castagnoli) != binary.BigEndian.Uint32(log[body:]) {
		return 0, 0, errors.New("a checksum does not match")
	}
	return body + crc32.Size, log[0], nil
}
