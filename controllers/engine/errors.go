package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Reason is the machine-readable cause of a failed call, in PascalCase. The contract's coarser code is
// derived from it in one place, api/v1alpha1.CodeFor.
type Reason string

// The reasons that engines report.
const (
	FileNotFound        Reason = "FileNotFound"
	PermissionDenied    Reason = "PermissionDenied"
	NotADirectory       Reason = "NotADirectory"
	IsADirectory        Reason = "IsADirectory"
	UnsupportedFile     Reason = "UnsupportedFile"
	FileTooLarge        Reason = "FileTooLarge"
	InvalidPath         Reason = "InvalidPath"
	InvalidPattern      Reason = "InvalidPattern"
	OffsetBeyondEnd     Reason = "OffsetBeyondEnd"
	RevisionConflict    Reason = "RevisionConflict"
	TextNotFound        Reason = "TextNotFound"
	TextAmbiguous       Reason = "TextAmbiguous"
	EditsOverlap        Reason = "EditsOverlap"
	NoChange            Reason = "NoChange"
	InvalidEdit         Reason = "InvalidEdit"
	UnsupportedEncoding Reason = "UnsupportedEncoding"
	NoSpace             Reason = "NoSpace"
	TooManyLinks        Reason = "TooManyLinks"
	ReadOnlyFileSystem  Reason = "ReadOnlyFileSystem"
	InputOutput         Reason = "InputOutput"
	ExitedNonZero       Reason = "ExitedNonZero"
	KilledBySignal      Reason = "KilledBySignal"
	TimedOut            Reason = "TimedOut"
	Cancelled           Reason = "Cancelled"
	SpawnFailed         Reason = "SpawnFailed"
	InvalidTimeout      Reason = "InvalidTimeout"
	SkillNotFound       Reason = "SkillNotFound"
)

// Error is a failed tool call. Message is a complete sentence for the assistant.
type Error struct {
	Reason  Reason
	Message string
	// Path is the file concerned, absolute, if there is one.
	Path string
	// CurrentRevision is set with RevisionConflict.
	CurrentRevision string
	// EffectsMayHaveOccurred is true only when something outside may have changed.
	EffectsMayHaveOccurred bool
	// Details is the tool's own metadata, as in Result.
	Details any
	// Err is the cause, for errors.Is and for logs; its text is never shown.
	Err error
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an *Error without a path.
func Errorf(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// ReasonOf returns the reason of an engine error, or the empty string.
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// SystemError turns an operating-system error about path into an *Error in plain words. verb says what was
// attempted, for instance "read". It returns nil for nil and passes an *Error through.
func SystemError(verb, path string, err error) error {
	if err == nil {
		return nil
	}
	var already *Error
	if errors.As(err, &already) {
		return already
	}
	e := &Error{Path: path, Err: err}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Reason, e.Message = Cancelled, "Operation aborted"
	case errors.Is(err, fs.ErrNotExist):
		e.Reason = FileNotFound
		e.Message = fmt.Sprintf("No such file or directory: %s. Check the path with ls or find.", path)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		e.Reason = PermissionDenied
		e.Message = fmt.Sprintf("Permission denied: cannot %s %s. Check its owner and mode with bash: ls -ld.", verb, path)
	case errors.Is(err, syscall.ENOTDIR):
		e.Reason = NotADirectory
		e.Message = fmt.Sprintf("Cannot %s %s: a part of the path is a file, not a directory.", verb, path)
	case errors.Is(err, syscall.EISDIR):
		e.Reason = IsADirectory
		e.Message = fmt.Sprintf("Cannot %s %s: it is a directory. Use ls to list it.", verb, path)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		e.Reason = NoSpace
		e.Message = fmt.Sprintf("Cannot %s %s: no space left on the device. Free some space and try again.", verb, path)
	case errors.Is(err, syscall.EROFS):
		e.Reason = ReadOnlyFileSystem
		e.Message = fmt.Sprintf("Cannot %s %s: the file system is read-only.", verb, path)
	case errors.Is(err, syscall.ELOOP):
		e.Reason = TooManyLinks
		e.Message = fmt.Sprintf("Cannot %s %s: too many levels of symbolic links. Check the links with bash: ls -l.", verb, path)
	case errors.Is(err, syscall.ENAMETOOLONG):
		e.Reason = InvalidPath
		e.Message = fmt.Sprintf("Cannot %s %s: the name is too long for the file system.", verb, path)
	default:
		e.Reason = InputOutput
		e.Message = fmt.Sprintf("Cannot %s %s: the operating system reported an error (%s).", verb, path, errnoText(err))
	}
	return e
}

func errnoText(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return "input/output error"
}
