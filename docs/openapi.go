// Package docs holds the documents that the program itself shows. They are
// files of this folder, so that what a server answers is what a reader of the
// repository sees. It must not hold anything but them: no logic, no text of its
// own.
package docs

import _ "embed" // for the documents

//go:embed openapi.json
var openAPI string

// OpenAPI returns the description of the HTTP API as OpenAPI 3.1, in JSON. Its
// info.version is "dev". The tests of internal/httpapi write it from the table
// of routes.
func OpenAPI() string { return openAPI }
