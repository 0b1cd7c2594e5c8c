package wire

import "github.com/cove-sandbox/cove"

// Uploaded is the answer to a form with files.
type Uploaded struct {
	Files []UploadedFile `json:"files" jsonschema:"in the order of the form"`
}

// UploadedFile is one file of a form that was written.
type UploadedFile struct {
	Path       string     `json:"path,omitempty"`
	PathBase64 []byte     `json:"path_base64,omitempty" jsonschema:"in the place of path where that is not UTF-8"`
	SizeBytes  cove.Bytes `json:"size"`
}

// UploadedFileOf returns the form of a file of a size.
func UploadedFileOf(name string, size int64) UploadedFile {
	w := UploadedFile{SizeBytes: cove.Bytes(size)}
	w.Path, w.PathBase64 = names(name)
	return w
}
