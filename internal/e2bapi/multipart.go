package e2bapi

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
)

// maxFormFiles bounds the files of one form.
const maxFormFiles = 10_000

// form is files in one body. The name of a part's file is its whole path.
type form struct {
	parts *intake.Form
	path  string // of the one file, where the request names it
	files int
}

// formOf returns the form that a body is.
func formOf(boundary, path string, r io.Reader) (*form, error) {
	if boundary == "" {
		return nil, cove.InvalidField("Content-Type", "has no boundary")
	}
	return &form{parts: intake.NewForm(r, boundary), path: path}, nil
}

// maxField bounds a part that is no file, all of which are left out.
const maxField = 64 << 10

// next returns the next file and where it goes, or io.EOF. Fields that are not files
// mean nothing here.
func (f *form) next() (name string, content io.Reader, err error) {
	for {
		part, err := f.parts.Next()
		if err == io.EOF { //nolint:errorlint // an end that is wrapped is one before the last boundary
			return "", nil, io.EOF
		}
		if err != nil {
			return "", nil, brokenForm(err)
		}
		field, file, named, err := disposition(part)
		if err != nil {
			return "", nil, err
		}
		if field != "file" {
			if f.files++; f.files > maxFormFiles {
				return "", nil, cove.Errorf(cove.Invalid, "the form has more than %d parts", maxFormFiles)
			}
			// It may have been compressed to next to nothing.
			if n, err := io.CopyN(io.Discard, part, maxField+1); err == nil || n > maxField {
				return "", nil, cove.Errorf(cove.Invalid, "a field of the form that is no file has more than %d bytes", maxField)
			}
			continue
		}
		return f.place(file, named, part)
	}
}

// place says where a file goes.
func (f *form) place(file string, named bool, part io.Reader) (string, io.Reader, error) {
	f.files++
	switch {
	case f.files > maxFormFiles:
		return "", nil, cove.Errorf(cove.Invalid, "the form has more than %d files", maxFormFiles).Remedy("send the rest in another call")
	case f.path != "" && f.files > 1:
		return "", nil, cove.InvalidField("path", "is for one file, and the form has more").Remedy("leave it out, and name each file by its path")
	case f.path != "":
		file = f.path
	case !named || file == "":
		return "", nil, cove.InvalidField("path", "is missing, and the file has no name")
	}
	return file, &formFile{part}, nil
}

// disposition returns the name of a part, and that of its file as the client wrote it.
func disposition(part *multipart.Part) (field, file string, named bool, err error) {
	text := part.Header.Get("Content-Disposition")
	kind, params, err := mime.ParseMediaType(text)
	if err != nil || kind != "form-data" {
		return "", "", false, cove.Errorf(cove.Invalid, "a part of the form has the Content-Disposition %q", clip(text)).Remedy("send form-data with a name and a filename")
	}
	file, named = params["filename"]
	return params["name"], unescape.Replace(file), named, nil
}

// unescape undoes what browsers, and those that do as they do, write for the characters
// that would end a name.
var unescape = strings.NewReplacer("%22", `"`, "%0D", "\r", "%0A", "\n")

// formFile is the content of a file. A form that ends in the middle of it is not its
// end.
type formFile struct{ part io.Reader }

// Read implements [io.Reader].
func (f *formFile) Read(p []byte) (int, error) {
	n, err := f.part.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // the end of the part
		err = brokenForm(err)
	}
	return n, err
}

func brokenForm(err error) error {
	if _, ours := errors.AsType[*cove.Error](err); ours {
		return err
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the end of the body is not that of the form
	}
	return cove.Wrap(cove.Invalid, err, "the form is malformed or ends before its last boundary").Remedy("send it again")
}
