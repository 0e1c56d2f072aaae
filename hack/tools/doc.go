// Package tools pins the programs that hack/verify runs. It is a module of its own to keep their
// dependencies out of the product.
package tools
