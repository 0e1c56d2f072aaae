//go:build !linux

package tunnel

import "context"

// NewRoutes returns routes that are not available here: the watchdog works without route changes.
func NewRoutes() Routes { return noRoutes{} }

type noRoutes struct{}

func (noRoutes) Current() string                     { return "" }
func (noRoutes) Watched() bool                       { return false }
func (noRoutes) Watch(ctx context.Context, _ func()) { <-ctx.Done() }
