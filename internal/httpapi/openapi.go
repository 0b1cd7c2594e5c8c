package httpapi

import (
	"encoding/json"
	"strings"

	"github.com/cove-sandbox/cove/docs"
)

// openAPI is the description of the API for a server of some version. It was
// written from the table of routes beforehand, so that no process has to carry
// what writes it; a test holds the two together.
func openAPI(version string) string {
	name, err := json.Marshal(version)
	if err != nil || version == "" {
		return docs.OpenAPI()
	}
	return strings.Replace(docs.OpenAPI(), `"version": "dev"`, `"version": `+string(name), 1)
}
