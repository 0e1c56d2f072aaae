package handoff

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

func TestDelivery(t *testing.T) {
	fault := errors.New("no desktop")
	for name, c := range map[string]struct {
		phase v1alpha1.DeliveryPhase
		o     observed
		want  v1alpha1.DeliveryPhase
	}{
		"new, alerts off":             {"", observed{}, v1alpha1.DeliveryDisabled},
		"new, alerts on":              {"", observed{desktop: true}, v1alpha1.DeliveryPending},
		"alerts turned on afterwards": {v1alpha1.DeliveryDisabled, observed{desktop: true}, v1alpha1.DeliveryDisabled},
		"waits":                       {v1alpha1.DeliveryPending, observed{}, v1alpha1.DeliveryPending},
		"taken, the cache is behind":  {v1alpha1.DeliveryPending, observed{sending: underWay}, v1alpha1.DeliveryPending},
		"under way":                   {v1alpha1.DeliverySending, observed{sending: underWay}, v1alpha1.DeliverySending},
		"of an earlier life":          {v1alpha1.DeliverySending, observed{}, v1alpha1.DeliveryUnknown},
		"shown":                       {v1alpha1.DeliverySending, observed{sending: sent}, v1alpha1.DeliverySent},
		"failed":                      {v1alpha1.DeliverySending, observed{sending: sent, err: fault}, v1alpha1.DeliveryFailed},
		"sent stays sent":             {v1alpha1.DeliverySent, observed{}, v1alpha1.DeliverySent},
		"unknown stays unknown":       {v1alpha1.DeliveryUnknown, observed{desktop: true}, v1alpha1.DeliveryUnknown},
	} {
		got := delivery(v1alpha1.HandoffDelivery{Phase: c.phase}, c.o)
		if got.Phase != c.want || (got.Phase == v1alpha1.DeliveryFailed) != (got.Error == fault.Error()) {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
	long := delivery(v1alpha1.HandoffDelivery{Phase: v1alpha1.DeliverySending}, observed{sending: sent, err: errors.New(strings.Repeat("ä", 5000))})
	if n := utf8.RuneCountInString(long.Error); n != 1000 {
		t.Errorf("an error of 5000 characters is kept with %d", n)
	}
}
