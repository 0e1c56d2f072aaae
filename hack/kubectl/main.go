// Command kubectl is the ordinary kubectl, built from its own library for the tests that drive the
// daemon's API with it. It is a module of its own to keep its dependencies out of the product.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	// CheckErr prints the error as kubectl does and ends with its exit code.
	util.CheckErr(cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()))
}
