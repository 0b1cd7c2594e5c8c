package httpapi

import (
	"errors"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
	"github.com/cove-sandbox/cove/internal/wire"
)

const formType = "multipart/form-data"

// What a form may hold beside the content of its files.
const (
	maxFormFiles = 1000
	maxFormField = 8 << 10 // bytes of a value
)

func uploadRoutes() []route {
	return []route{{
		method: http.MethodPost, pattern: "/api/sandboxes/{id}/upload", needs: []cove.Verb{cove.FileWrite}, takes: formType,
		summary: "Write the files of a form, one after the other; each is whole or not there, and those before one that is refused stay",
		deed:    deed{answer: reflect.TypeFor[wire.Uploaded](), status: http.StatusCreated, do: (*call).uploadForm},
		query:   []param{{name: "path", kind: word, doc: "the directory of the files; left out, the workspace"}},
		headers: []header{modeHeader},
	}}
}

// uploadForm writes each file of a form while it arrives.
func (c *call) uploadForm() error {
	f, err := c.form()
	if err != nil {
		return err
	}
	done := wire.Uploaded{Files: []wire.UploadedFile{}}
	for {
		file, err := f.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && len(done.Files) == maxFormFiles {
			err = cove.Errorf(cove.Invalid, "the form holds more than %d files", maxFormFiles).Remedy("send the rest in another request, or all as one tar to …/archive")
		}
		if err == nil {
			err = c.files().Write(c.r.Context(), file.name, file, file.mode)
		}
		if err != nil {
			return withWritten(f.body.settle(err), done)
		}
		done.Files = append(done.Files, wire.UploadedFileOf(file.name, file.size))
	}
	if len(done.Files) == 0 {
		return cove.Errorf(cove.Invalid, "the form holds no file; send each as a part with a filename, such as curl -F file=@name")
	}
	return c.send(http.StatusCreated, done)
}

// withWritten says in an error which files had been written before it.
func withWritten(err error, done wire.Uploaded) error {
	e, ours := errors.AsType[*cove.Error](err)
	if !ours {
		e = cove.Wrap(cove.CodeOf(err), err, "%s", cove.MessageOf(err))
	}
	return e.With("written", done.Files)
}

// form reads the parts of a request.
type form struct {
	body  *upload
	parts *intake.Form
	dir   string
	mode  fs.FileMode
}

func (c *call) form() (*form, error) {
	kind, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != formType || params["boundary"] == "" {
		return nil, cove.Errorf(cove.Invalid, "the Content-Type %.80q is not %s with a boundary; this route takes forms, and PUT …/files takes a file as it is", c.r.Header.Get("Content-Type"), formType)
	}
	mode, err := c.fileMode()
	if err != nil {
		return nil, err
	}
	body := c.upload()
	return &form{body: body, parts: intake.NewForm(body, params["boundary"]), dir: c.dir(), mode: mode}, nil
}

// formFile is the next file of a form, to be read before the one after it.
type formFile struct {
	name string // with the directory
	mode fs.FileMode
	part *multipart.Part
	size int64 // of what was read
}

// Read implements [io.Reader]. A form that ends in the middle of a file is not
// its end.
func (f *formFile) Read(p []byte) (int, error) {
	n, err := f.part.Read(p)
	f.size += int64(n)
	if errors.Is(err, io.ErrUnexpectedEOF) {
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
	return cove.Wrap(cove.Invalid, err, "the form is malformed or ends before its last boundary; send it again")
}

// next returns the next file of the form, with what the fields before it say
// about it, or io.EOF.
func (f *form) next() (*formFile, error) {
	name, mode := "", f.mode
	for {
		part, err := f.parts.Next()
		if err == io.EOF { //nolint:errorlint // the form's own end, not one within
			return nil, io.EOF
		}
		if err != nil {
			return nil, brokenForm(err)
		}
		field, file, err := disposition(part)
		if err != nil {
			return nil, err
		}
		if file != "" {
			if name == "" {
				name = file
			}
			if name, err = f.target(name); err != nil {
				return nil, err
			}
			return &formFile{name: name, mode: mode, part: part}, nil
		}
		value, err := fieldValue(field, part)
		if err != nil {
			return nil, err
		}
		switch field {
		case "path":
			name = value
		case "mode":
			if mode, err = wire.ParseMode(value); err != nil {
				return nil, err
			}
		default:
			return nil, cove.InvalidField(field[:min(len(field), 80)], "is not a field of this form; it has files, and before each of them path and mode, if need be")
		}
	}
}

// disposition returns the name of a part, and that of its file as the client
// wrote it.
func disposition(part *multipart.Part) (field, file string, err error) {
	kind, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil || kind != "form-data" {
		return "", "", cove.Errorf(cove.Invalid, "a part of the form has the Content-Disposition %.80q; use form-data with a name, and with a filename for a file",
			part.Header.Get("Content-Disposition"))
	}
	return params["name"], params["filename"], nil
}

// fieldValue reads the value of a field.
func fieldValue(field string, part *multipart.Part) (string, error) {
	value, err := io.ReadAll(io.LimitReader(part, maxFormField+1))
	if err != nil {
		return "", brokenForm(err)
	}
	if len(value) > maxFormField {
		return "", cove.InvalidField(field[:min(len(field), 80)], "is longer than %d bytes; a file has a filename", maxFormField).Reason(intake.ReasonTooLarge)
	}
	return string(value), nil
}

// target is where a file of the form goes. Its own name cannot lead out of the
// directory that the request names.
func (f *form) target(name string) (string, error) {
	if path.IsAbs(name) || strings.ContainsRune(name, 0) || slices.Contains(strings.Split(name, "/"), "..") || path.Clean(name) == "." {
		return "", cove.InvalidField("filename", "%.200q cannot be the name of a file below %.200q; use a relative name without ..", name, f.dir)
	}
	to := path.Join(f.dir, name)
	if !path.IsAbs(to) {
		to = path.Join(cove.WorkspacePath, to)
	}
	return to, nil
}
