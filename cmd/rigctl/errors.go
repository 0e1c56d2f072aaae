package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// report prints an error in one line, several errors in as many.
func report(w io.Writer, err error) {
	var many utilerrors.Aggregate
	if errors.As(err, &many) {
		for _, one := range utilerrors.Flatten(many).Errors() {
			report(w, one)
		}
		return
	}
	fmt.Fprintln(w, sentence(err))
}

// sentence is an error in kubectl's words where the API gave it, with the fields that are not valid one by one.
func sentence(err error) string {
	var down *notRunningError
	if errors.As(err, &down) {
		return "rigctl: " + down.Error()
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "error: " + err.Error()
	}
	s := status.Status()
	switch {
	case s.Reason == metav1.StatusReasonInvalid && s.Details != nil && len(s.Details.Causes) > 0:
		lines := []string{fmt.Sprintf("The %s %q is invalid:", s.Details.Kind, s.Details.Name)}
		for _, c := range s.Details.Causes {
			lines = append(lines, fmt.Sprintf("* %s: %s", c.Field, c.Message))
		}
		return strings.Join(lines, "\n")
	case s.Reason == metav1.StatusReasonUnknown:
		return "Error from server: " + s.Message
	}
	return fmt.Sprintf("Error from server (%s): %s", s.Reason, s.Message)
}
