// Package openapi holds the generated OpenAPI definitions of our kinds and of the apimachinery types that
// they use; kubectl explain and server-side apply live on it.
package openapi
