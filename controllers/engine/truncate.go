package engine

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of one text result, shared by all tools.
const (
	// MaxLines is the largest number of lines in one text result.
	MaxLines = 2000
	// MaxBytes is the largest size of one text result, UTF-8 bytes.
	MaxBytes = 51200
	// NoLineLimit lifts the limit on lines; it is 2^53-1, the value clients see.
	NoLineLimit = 9007199254740991
)

// TruncatedBy says which limit cut a text. The zero value means none and is encoded as null.
type TruncatedBy string

// The limits that can cut a text.
const (
	ByLines TruncatedBy = "lines"
	ByBytes TruncatedBy = "bytes"
)

// MarshalJSON encodes the zero value as null.
func (t TruncatedBy) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return []byte(`"` + string(t) + `"`), nil
}

// Truncation describes how a text was cut. The kept text is not encoded: the result carries it already.
type Truncation struct {
	Content               string      `json:"-"`
	Truncated             bool        `json:"truncated"`
	TruncatedBy           TruncatedBy `json:"truncatedBy"`
	TotalLines            int         `json:"totalLines"`
	TotalBytes            int         `json:"totalBytes"`
	OutputLines           int         `json:"outputLines"`
	OutputBytes           int         `json:"outputBytes"`
	LastLinePartial       bool        `json:"lastLinePartial"`
	FirstLineExceedsLimit bool        `json:"firstLineExceedsLimit"`
	MaxLines              int         `json:"maxLines"`
	MaxBytes              int         `json:"maxBytes"`
}

// CountLines counts as truncation does: lines are split at LF, a final LF opens no further line, and the
// empty text has none.
func CountLines(s string) int {
	if s == "" {
		return 0
	}
	n := strings.Count(s, "\n")
	if !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

func untruncated(s string, lines, maxLines, maxBytes int) Truncation {
	return Truncation{Content: s, TotalLines: lines, TotalBytes: len(s), OutputLines: lines, OutputBytes: len(s),
		MaxLines: maxLines, MaxBytes: maxBytes}
}

// TruncateHead keeps whole lines from the start within both limits. Kept lines are joined by LF without a
// final one. A first line longer than maxBytes leaves nothing and sets FirstLineExceedsLimit.
func TruncateHead(s string, maxLines, maxBytes int) Truncation {
	lines := CountLines(s)
	if lines <= maxLines && len(s) <= maxBytes {
		return untruncated(s, lines, maxLines, maxBytes)
	}
	t := Truncation{Truncated: true, TruncatedBy: ByLines, TotalLines: lines, TotalBytes: len(s),
		MaxLines: maxLines, MaxBytes: maxBytes}
	end, kept := 0, 0
	for rest := s; kept < lines && kept < maxLines; kept++ {
		line, after, _ := strings.Cut(rest, "\n")
		next := end + len(line)
		if kept > 0 {
			next++ // the LF before this line
		}
		if next > maxBytes {
			t.TruncatedBy = ByBytes
			t.FirstLineExceedsLimit = kept == 0
			break
		}
		end, rest = next, after
	}
	t.Content, t.OutputLines, t.OutputBytes = s[:end], kept, end
	return t
}

// TruncateTail keeps whole lines from the end within both limits. If the last line alone is too long its
// last maxBytes bytes are kept, moved forward to a character start, and LastLinePartial is set.
func TruncateTail(s string, maxLines, maxBytes int) Truncation {
	lines := CountLines(s)
	if lines <= maxLines && len(s) <= maxBytes {
		return untruncated(s, lines, maxLines, maxBytes)
	}
	t := Truncation{Truncated: true, TruncatedBy: ByLines, TotalLines: lines, TotalBytes: len(s),
		MaxLines: maxLines, MaxBytes: maxBytes}
	body := strings.TrimSuffix(s, "\n")
	start, kept := len(body), 0
	for kept < lines && kept < maxLines {
		end := start
		if kept > 0 {
			end-- // the LF that ends the line above
		}
		from := strings.LastIndexByte(body[:end], '\n') + 1
		if len(body)-from > maxBytes {
			t.TruncatedBy = ByBytes
			if kept == 0 {
				from = end - maxBytes
				for from < end && !utf8.RuneStart(body[from]) {
					from++
				}
				start, kept = from, 1
				t.LastLinePartial = true
			}
			break
		}
		start = from
		kept++
	}
	t.Content, t.OutputLines, t.OutputBytes = body[start:], kept, len(body)-start
	return t
}

// FormatSize writes a number of bytes as the results show it: "17B", "50.0KB", "4.5MB", divisor 1024.
func FormatSize(n int64) string {
	switch {
	case n < 1024:
		return fmt.Sprintf("%dB", n)
	case n < 1024*1024:
		return fmt.Sprintf("%.1fKB", float64(n)/1024)
	default:
		return fmt.Sprintf("%.1fMB", float64(n)/(1024*1024))
	}
}

// Notices joins notices as ls, find and grep append them: after a blank line, inside brackets. It returns
// the text alone when there are none.
func Notices(text string, notices ...string) string {
	if len(notices) == 0 {
		return text
	}
	return text + "\n\n[" + strings.Join(notices, ". ") + "]"
}
