// Command kubectl is the ordinary kubectl, built from its own library for the tests that drive the
// daemon's API with it. It is a module of its own to keep its dependencies out of the product.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() { os.Exit(cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand())) }
