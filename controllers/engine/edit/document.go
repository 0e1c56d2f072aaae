package edit

import (
	"bytes"
	"context"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

const mark = "\ufeff" // byte order mark

// document is a file in memory and the edits asked for.
type document struct {
	path  string
	bom   []byte // empty or the UTF-8 byte order mark
	raw   []byte // what follows it
	lf    *view  // raw with LF line ends
	edits []Edit // with LF line ends
	// normalised marks the edits that were found only in normalised form.
	normalised []bool
	plain      *view // lf in normalised form, made when first needed
}

func newDocument(path string, content []byte) *document {
	d := &document{path: path, raw: content}
	if bytes.HasPrefix(content, []byte(mark)) {
		d.bom, d.raw = content[:len(mark)], content[len(mark):]
	}
	d.lf = withLF(d.raw)
	return d
}

// match is a place that is to be replaced.
type match struct {
	edit       int
	start, end int    // in the view with LF line ends
	text       string // what takes the place there
}

// check refuses files whose encoding edit does not handle, and empty texts.
func (d *document) check(edits []Edit) error {
	if err := d.checkEncoding(edits); err != nil {
		return err
	}
	for i, e := range edits {
		if e.OldText == "" {
			if len(edits) == 1 {
				return d.failure(engine.InvalidEdit, fmt.Sprintf("oldText must not be empty in %s.", d.path),
					"Quote the text to replace. To insert, quote the line beside the place and repeat it in newText.")
			}
			return d.failure(engine.InvalidEdit, fmt.Sprintf("edits[%d].oldText must not be empty in %s.", i, d.path),
				"Quote the text to replace. To insert, quote the line beside the place and repeat it in newText.")
		}
		d.edits = append(d.edits, Edit{lf(e.OldText), lf(e.NewText)})
	}
	d.normalised = make([]bool, len(edits))
	return nil
}

// failure is an error about the document: the tool's sentence, then help on a line of its own.
func (d *document) failure(reason engine.Reason, sentence, help string) error {
	if help != "" {
		sentence += "\n" + help
	}
	return &engine.Error{Reason: reason, Path: d.path, Message: sentence}
}

// locate finds the edits and returns them in the order of their places.
func (d *document) locate(ctx context.Context, edits []Edit) ([]match, error) {
	var matches []match
	for i := range edits {
		if err := ctx.Err(); err != nil {
			return nil, engine.SystemError("edit", d.path, err)
		}
		m, err := d.find(i)
		if err != nil {
			return nil, err
		}
		matches = append(matches, m)
	}
	sort.SliceStable(matches, func(a, b int) bool { return matches[a].start < matches[b].start })
	for i := 1; i < len(matches); i++ {
		if a, b := matches[i-1], matches[i]; b.start < a.end {
			return nil, d.failure(engine.EditsOverlap, fmt.Sprintf("edits[%d] and edits[%d] overlap in %s. "+
				"Merge them into one edit or target disjoint regions.", a.edit, b.edit, d.path),
				fmt.Sprintf("edits[%d] covers %s, edits[%d] covers %s.", a.edit, d.span(a), b.edit, d.span(b)))
		}
	}
	return matches, nil
}

// find finds one edit, exactly or else in normalised form.
func (d *document) find(i int) (match, error) {
	old, text := d.withoutMark(d.edits[i])
	at := occurrences(d.lf.text, []byte(old))
	if at.count > 1 {
		return match{}, d.ambiguous(i, at, func(n int) int { return n })
	}
	if at.count == 1 {
		return match{edit: i, start: at.first[0], end: at.first[0] + len(old), text: text}, nil
	}
	form := string(normalised([]byte(old)).text)
	if form != old && strings.Trim(form, "\n") == "" { // blanks are matched as they are or not at all
		return match{}, d.notFound(i)
	}
	if d.plain == nil {
		d.plain = normalised(d.lf.text)
	}
	at = occurrences(d.plain.text, []byte(form))
	if at.count > 1 {
		return match{}, d.ambiguous(i, at, func(n int) int { n, _ = d.plain.begin(n); return n })
	}
	if at.count == 0 {
		return match{}, d.notFound(i)
	}
	d.normalised[i] = true
	start, lead := d.plain.begin(at.first[0])
	end, tail := d.plain.finish(at.first[0] + len(form))
	if text == old { // nothing is asked for: the look-alike stays
		lead, text, tail = nil, string(d.lf.text[start:end]), nil
	}
	return match{edit: i, start: start, end: end, text: string(lead) + text + string(tail)}, nil
}

// withoutMark drops a byte order mark from texts that quote the beginning of a file that has one: it is kept anyway.
func (d *document) withoutMark(e Edit) (old, text string) {
	if len(d.bom) == 0 {
		return e.OldText, e.NewText
	}
	old = strings.TrimPrefix(e.OldText, mark)
	if old == "" {
		return e.OldText, e.NewText
	}
	if len(old) < len(e.OldText) || bytes.HasPrefix(d.lf.text, []byte(old)) {
		return old, strings.TrimPrefix(e.NewText, mark)
	}
	return old, e.NewText
}

// places are the positions at which a text occurs, overlapping ones included.
type places struct {
	count int
	first []int // at most maxPlaces
}

const maxPlaces = 10

func occurrences(text, pattern []byte) places {
	var p places
	first := bytes.Index(text, pattern)
	if first < 0 {
		return p
	}
	p = places{count: 1, first: []int{first}}
	if !bytes.Contains(text[first+1:], pattern) {
		return p
	}
	p = places{}
	fail := failures(pattern)
	for i, k := first, 0; i < len(text); i++ {
		for k > 0 && (k == len(pattern) || text[i] != pattern[k]) {
			k = fail[k-1]
		}
		if text[i] == pattern[k] {
			k++
		}
		if k == len(pattern) {
			p.count++
			if len(p.first) < maxPlaces {
				p.first = append(p.first, i+1-len(pattern))
			}
		}
	}
	return p
}

// failures is the table of Knuth, Morris and Pratt: for each prefix the length of its longest proper border. With it
// the count takes linear time even for repetitive texts.
func failures(pattern []byte) []int {
	fail := make([]int, len(pattern))
	for i, k := 1, 0; i < len(pattern); i++ {
		for k > 0 && pattern[i] != pattern[k] {
			k = fail[k-1]
		}
		if pattern[i] == pattern[k] {
			k++
		}
		fail[i] = k
	}
	return fail
}

func (d *document) ambiguous(i int, at places, source func(int) int) error {
	sentence := fmt.Sprintf("Found %d occurrences of the text in %s. The text must be unique. "+
		"Please provide more context to make it unique.", at.count, d.path)
	if len(d.edits) > 1 {
		sentence = fmt.Sprintf("Found %d occurrences of edits[%d] in %s. Each oldText must be unique. "+
			"Please provide more context to make it unique.", at.count, i, d.path)
	}
	lines := make([]string, len(at.first))
	for n, pos := range at.first {
		lines[n] = fmt.Sprint(d.line(source(pos)))
	}
	help := "They begin on lines " + strings.Join(lines, ", ")
	if rest := at.count - len(lines); rest > 0 {
		help += fmt.Sprintf(" and %d more", rest)
	}
	return d.failure(engine.TextAmbiguous, sentence, help+".")
}

func (d *document) notFound(i int) error {
	sentence := fmt.Sprintf("Could not find the exact text in %s. "+
		"The old text must match exactly including all whitespace and newlines.", d.path)
	if len(d.edits) > 1 {
		sentence = fmt.Sprintf("Could not find edits[%d] in %s. "+
			"The oldText must match exactly including all whitespace and newlines.", i, d.path)
	}
	return d.failure(engine.TextNotFound, sentence, d.resemblance(d.edits[i].OldText))
}

func (d *document) noChange(matches []match) error {
	sentence := fmt.Sprintf("No changes made to %s. The replacement produced identical content. "+
		"This might indicate an issue with special characters or the text not existing as expected.", d.path)
	if len(d.edits) > 1 {
		sentence = fmt.Sprintf("No changes made to %s. The replacements produced identical content.", d.path)
	}
	return d.failure(engine.NoChange, sentence, "newText equals what is there already on "+d.span(matches[0])+
		". If that is what you want, go on without this edit.")
}

// line is the number, from 1, of the line at a position of the view with LF line ends. As in read, lines end at LF.
func (d *document) line(pos int) int {
	raw, _ := d.lf.begin(pos)
	return 1 + bytes.Count(d.raw[:min(raw, len(d.raw))], []byte("\n"))
}

// span names the lines that a match covers.
func (d *document) span(m match) string {
	a, b := d.line(m.start), d.line(max(m.start, m.end-1))
	if a == b {
		return fmt.Sprintf("line %d", a)
	}
	return fmt.Sprintf("lines %d-%d", a, b)
}

// checkEncoding refuses what cannot be edited byte by byte.
func (d *document) checkEncoding(edits []Edit) error {
	content := d.raw
	switch {
	case bytes.HasPrefix(content, []byte("\xff\xfe")), bytes.HasPrefix(content, []byte("\xfe\xff")):
		return d.failure(engine.UnsupportedEncoding, "The file "+d.path+" is in UTF-16, which edit does not change.",
			"Convert it with bash (iconv -f UTF-16 -t UTF-8), edit the converted file and convert it back.")
	case bytes.IndexByte(content, 0) >= 0:
		return d.failure(engine.UnsupportedEncoding, fmt.Sprintf("The file %s has a NUL byte at offset %d: it is binary, or UTF-16 "+
			"without a byte order mark. Edit does not change it.", d.path, len(d.bom)+bytes.IndexByte(content, 0)),
			"Convert it with bash (iconv -f UTF-16LE -t UTF-8) or change it with a program for its format.")
	}
	legacy := legacyEncoding(content)
	if legacy == "" {
		return nil
	}
	for i, e := range edits {
		if !isASCII([]byte(e.NewText)) {
			return d.failure(engine.UnsupportedEncoding, fmt.Sprintf("The file %s is not UTF-8 but looks like %s, and edits[%d].newText "+
				"has characters beyond ASCII: they would be written as UTF-8 and mix two encodings.", d.path, legacy, i),
				"Use only ASCII in newText, or convert the file first with bash (iconv -f "+legacy+" -t UTF-8).")
		}
	}
	return nil
}

// legacyEncoding guesses the encoding of content that is not UTF-8; empty for UTF-8, and for what is UTF-8 but for a
// few stray bytes.
func legacyEncoding(content []byte) string {
	stray, encoded, c1 := 0, 0, false
	for rest := content; len(rest) > 0; {
		if rest[0] < utf8.RuneSelf {
			rest = rest[1:]
			continue
		}
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			stray++
			c1 = c1 || rest[0] < 0xa0
		} else {
			encoded++
		}
		rest = rest[n:]
	}
	switch {
	case stray == 0 || encoded > stray:
		return ""
	case c1:
		return "WINDOWS-1252"
	}
	return "ISO-8859-1"
}
