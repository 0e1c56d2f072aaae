//go:build !linux

package handoff

import (
	"context"
	"errors"
)

// Desktop shows notifications where there is a way to: on this system there is none yet.
type Desktop struct{}

// Notify says so.
func (*Desktop) Notify(context.Context, Notification) error {
	return errors.New("desktop notifications are not available on this system")
}
