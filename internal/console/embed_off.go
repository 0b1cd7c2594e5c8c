//go:build !embedconsole

package console

// image is the archive; a plain build has none.
var image []byte
