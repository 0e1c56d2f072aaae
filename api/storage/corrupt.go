package storage

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// maxListErrors is how many undecodable objects a list names before it gives up.
const maxListErrors = 100

// listErrors collects what a list could not decode. Normally the first error
// ends the list; where deleting undecodable objects is allowed they are all
// named, so that someone can do so.
type listErrors struct {
	collect bool
	of      schema.GroupResource
	causes  []metav1.StatusCause
	first   error
}

func newListErrors(of schema.GroupResource) listErrors {
	return listErrors{of: of, collect: utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)}
}

// add takes the error of one object and returns the error that ends the list,
// if it does. An error is collected only if it says that the object is corrupt.
func (l *listErrors) add(key string, err error) error {
	if !l.collect || !storage.IsCorruptObject(err) {
		if len(l.causes) == 0 {
			return err
		}
		l.causes = append(l.causes, metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse, Message: err.Error()})
		return l.aggregate()
	}
	if l.first == nil {
		l.first = err
	}
	l.causes = append(l.causes, metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse, Field: key, Message: err.Error()})
	if len(l.causes) < maxListErrors {
		return nil
	}
	l.causes = append(l.causes, metav1.StatusCause{Type: metav1.CauseTypeTooMany, Message: "too many errors, the list is truncated"})
	return l.aggregate()
}

// aggregate returns one error for all that were collected, nil if none was.
func (l *listErrors) aggregate() error {
	if len(l.causes) == 0 {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError,
		Message: fmt.Sprintf("%d of the %s cannot be read, the first because: %v", len(l.causes), l.of, l.first),
		Details: &metav1.StatusDetails{Group: l.of.Group, Kind: l.of.Resource, Name: "list", Causes: l.causes},
	}}
}
