package server

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/component-base/compatibility"
)

// effectiveVersion tells clients the version of the Kubernetes API that we speak, which kubectl compares with
// its own, and ours as its build: v1.37.0+rig-bridge.0.1.2.
type effectiveVersion struct {
	compatibility.EffectiveVersion
	own string
}

var notInBuild = regexp.MustCompile(`[^0-9A-Za-z.-]+`)

// Info is what /version answers.
func (e effectiveVersion) Info() *version.Info {
	info := *e.EffectiveVersion.Info()
	info.GitVersion = fmt.Sprintf("v%s.%s.0+rig-bridge.", info.Major, info.Minor) + notInBuild.ReplaceAllString(e.own, "-")
	info.GitCommit, info.GitTreeState, info.BuildDate = "", "", ""
	return &info
}
