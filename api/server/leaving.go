package server

import (
	"context"
	"net/http"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// letLeave lets clients go in the middle: a closed tab or an interrupted kubectl is no fault of ours, so nothing is
// reported of it. A request that does not last is finished within its deadline all the same, and whatever lasts ends
// with its context.
//
// The usual chain runs each request in a goroutine of its own, answers when the context ends first, and reports that
// and each write that fails afterwards as errors. It is for handlers that do not heed their deadline; ours read a
// local store and do.
func letLeave(h http.Handler, lasts apirequest.LongRunningRequestCheck) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, ok := apirequest.RequestInfoFrom(r.Context()); ok && !lasts(r, info) {
			r = r.WithContext(context.WithoutCancel(r.Context()))
		}
		h.ServeHTTP(responsewriter.WrapForHTTP1Or2(&answer{ResponseWriter: w}), r)
	})
}

// answer drops what cannot be written any more.
type answer struct {
	http.ResponseWriter
	left bool
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) Write(p []byte) (int, error) {
	if !a.left {
		_, err := a.ResponseWriter.Write(p)
		a.left = err != nil
	}
	return len(p), nil
}
