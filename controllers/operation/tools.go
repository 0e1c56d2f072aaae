package operation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/bash"
	"github.com/rigbridge/rigbridge/controllers/engine/edit"
	"github.com/rigbridge/rigbridge/controllers/engine/find"
	"github.com/rigbridge/rigbridge/controllers/engine/grep"
	"github.com/rigbridge/rigbridge/controllers/engine/ls"
	"github.com/rigbridge/rigbridge/controllers/engine/read"
	"github.com/rigbridge/rigbridge/controllers/engine/replace"
	"github.com/rigbridge/rigbridge/controllers/engine/skills"
	"github.com/rigbridge/rigbridge/controllers/engine/write"
)

// lookup runs a read-only tool.
type lookup func(ctx context.Context, env engine.Env, arguments json.RawMessage) (*engine.Result, map[string]any, error)

var lookups = map[v1alpha1.Tool]lookup{
	v1alpha1.ToolRead:      readFile,
	v1alpha1.ToolLs:        listDirectory,
	v1alpha1.ToolFind:      findFiles,
	v1alpha1.ToolGrep:      searchFiles,
	v1alpha1.ToolSkillInfo: skillInfo,
}

func readFile(ctx context.Context, env engine.Env, raw json.RawMessage) (*engine.Result, map[string]any, error) {
	var a struct {
		Path          string
		Offset, Limit int
	}
	if err := decode(raw, &a); err != nil {
		return nil, nil, err
	}
	res, err := read.Run(ctx, env, read.Args{Path: a.Path, Offset: a.Offset, Limit: a.Limit})
	return res, nil, err
}

func listDirectory(ctx context.Context, env engine.Env, raw json.RawMessage) (*engine.Result, map[string]any, error) {
	var a struct {
		Path  string
		Limit int
	}
	if err := decode(raw, &a); err != nil {
		return nil, nil, err
	}
	res, err := ls.Run(ctx, env, ls.Args{Path: a.Path, Limit: a.Limit})
	return res, nil, err
}

func findFiles(ctx context.Context, env engine.Env, raw json.RawMessage) (*engine.Result, map[string]any, error) {
	var a struct {
		Pattern, Path string
		Limit         int
	}
	if err := decode(raw, &a); err != nil {
		return nil, nil, err
	}
	res, err := find.Run(ctx, env, find.Args{Pattern: a.Pattern, Path: a.Path, Limit: a.Limit})
	return res, nil, err
}

func searchFiles(ctx context.Context, env engine.Env, raw json.RawMessage) (*engine.Result, map[string]any, error) {
	var a struct {
		Pattern, Path, Glob string
		IgnoreCase, Literal bool
		Context, Limit      int
	}
	if err := decode(raw, &a); err != nil {
		return nil, nil, err
	}
	res, err := grep.Run(ctx, env, grep.Args{Pattern: a.Pattern, Path: a.Path, Glob: a.Glob, IgnoreCase: a.IgnoreCase,
		Literal: a.Literal, Context: a.Context, Limit: a.Limit})
	return res, nil, err
}

func skillInfo(_ context.Context, env engine.Env, raw json.RawMessage) (*engine.Result, map[string]any, error) {
	var a struct{ Name string }
	if err := decode(raw, &a); err != nil {
		return nil, nil, err
	}
	got, err := skills.Info(env, a.Name)
	if err != nil {
		return nil, nil, err
	}
	fields := map[string]any{}
	if got.Skill == nil {
		fields["skills"] = got.Skills
		return &engine.Result{Text: got.Text}, fields, nil
	}
	b, err := json.Marshal(got.Skill)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the skill: %w", err)
	}
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, nil, fmt.Errorf("encode the skill: %w", err)
	}
	return &engine.Result{Text: got.Text}, fields, nil
}

// preparation makes the plan of a change, without effect. target is the file that the call names.
type preparation struct {
	target  func(raw json.RawMessage) (string, error)
	prepare func(ctx context.Context, env engine.Env, raw json.RawMessage) (*replace.Plan, error)
}

var preparations = map[v1alpha1.Tool]preparation{
	v1alpha1.ToolWrite: {target: pathArgument, prepare: func(ctx context.Context, env engine.Env, raw json.RawMessage) (*replace.Plan, error) {
		var a write.Args
		if err := decode(raw, &a); err != nil {
			return nil, err
		}
		return write.Prepare(ctx, env, a)
	}},
	v1alpha1.ToolEdit: {target: pathArgument, prepare: func(ctx context.Context, env engine.Env, raw json.RawMessage) (*replace.Plan, error) {
		var a edit.Args
		if err := decode(raw, &a); err != nil {
			return nil, err
		}
		return edit.Prepare(ctx, env, a)
	}},
}

func pathArgument(raw json.RawMessage) (string, error) {
	var a struct{ Path string }
	err := decode(raw, &a)
	return a.Path, err
}

// command decodes the arguments of bash.
func command(raw json.RawMessage) (bash.Args, error) {
	var a struct {
		Command string
		Timeout json.Number
	}
	if err := decode(raw, &a); err != nil {
		return bash.Args{}, err
	}
	seconds, err := a.Timeout.Float64()
	if err != nil {
		return bash.Args{}, engine.Errorf(engine.InvalidTimeout, "Invalid timeout: must be a finite number of seconds")
	}
	timeout, text, err := bash.ParseTimeout(seconds)
	return bash.Args{Command: a.Command, Timeout: timeout, TimeoutText: text}, err
}

func decode(raw json.RawMessage, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("decode the arguments: %w", err)
	}
	return nil
}

// elapsed notes how long a tool ran.
func elapsed(o *outcome, begun time.Time) *outcome {
	took := time.Since(begun)
	o.elapsed = &took
	return o
}
