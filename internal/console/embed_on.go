//go:build embedconsole

package console

import _ "embed"

// image is the archive. The file is not in the tree: scripts/build.sh makes it with
// scripts/web.sh, and lays it over this place.
//
//go:embed console.tar
var image []byte
