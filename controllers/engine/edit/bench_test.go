package edit_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/edit"
	"github.com/rigbridge/rigbridge/controllers/engine/enginetest"
)

// BenchmarkEdit changes one line of a file. "prepare" has no sync, "commit" adds two.
func BenchmarkEdit(b *testing.B) {
	for _, lines := range []int{100, 20000} {
		var text strings.Builder
		for i := range lines {
			fmt.Fprintf(&text, "line number %d of the file\n", i)
		}
		f := newFile(b, text.String())
		a := edit.Args{Path: f.path, ExpectedRevision: enginetest.Revision(f.path),
			Edits: []edit.Edit{{OldText: fmt.Sprintf("number %d of", lines-1), NewText: "last of"}}}
		b.Run(fmt.Sprintf("prepare/%d lines", lines), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := edit.Prepare(context.Background(), f.env, a); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("commit/%d lines", lines), func(b *testing.B) {
			for b.Loop() {
				p, err := edit.Prepare(context.Background(), f.env, a)
				check(b, err)
				_, err = p.Commit(context.Background(), uuid.NewString())
				check(b, err)
				b.StopTimer()
				check(b, os.WriteFile(f.path, []byte(text.String()), 0o644))
				b.StartTimer()
			}
		})
		wrong := a
		wrong.Edits = []edit.Edit{{OldText: fmt.Sprintf("numbre %d of", lines-1), NewText: "x"}}
		b.Run(fmt.Sprintf("not found/%d lines", lines), func(b *testing.B) {
			for b.Loop() {
				if _, err := edit.Prepare(context.Background(), f.env, wrong); engine.ReasonOf(err) != engine.TextNotFound {
					b.Fatal(err)
				}
			}
		})
	}
}
