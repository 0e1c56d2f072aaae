package storage

import (
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
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
	errs    []error
}

func newListErrors() listErrors {
	return listErrors{collect: utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)}
}

func (l *listErrors) add(key string, err error) (more bool, _ error) {
	if !l.collect {
		return false, err
	}
	l.errs = append(l.errs, storage.NewCorruptObjError(key, err))
	return len(l.errs) < maxListErrors, nil
}

func (l *listErrors) aggregate() error {
	if len(l.errs) == 0 {
		return nil
	}
	return utilerrors.NewAggregate(l.errs)
}
