package bucket

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"

	"github.com/cove-sandbox/cove"
)

// errAgain marks what may be otherwise in a moment. It is only among causes.
var errAgain = errors.New("try again")

// lost is a connection that was not made or did not last.
func (s *s3) lost(err error) error {
	if _, ok := errors.AsType[*cove.Error](err); ok {
		return err
	}
	return cove.Wrap(cove.Unavailable, errors.Join(err, errAgain), "%s does not answer", s.about()).
		Remedy("see that the server runs and is reached from here, and that COVE_ARCHIVE_URL names it; then try again")
}

// silent is lost, unless it is the caller who left.
func (s *s3) silent(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause != nil && !errors.Is(cause, errSilent) {
		if errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
			err = cause
		} else {
			err = ctx.Err()
		}
		return fault(s.about(), err)
	}
	return s.lost(err)
}

// strange is an answer that no S3 server gives.
func (s *s3) strange(err error) error {
	return cove.Wrap(cove.Unavailable, err, "%s answers, and not as S3 does", s.about()).
		Remedy("see what COVE_ARCHIVE_URL names")
}

// refused is an answer that is an error. Of what the server says only the code is
// taken: the rest may repeat what was sent.
func (s *s3) refused(resp *http.Response) error {
	code := errorCode(resp)
	cause := errors.New(resp.Status + " " + code)
	refuse := func(words, remedy string) error {
		return cove.Wrap(cove.Unavailable, cause, "%s %s", s.about(), words).Remedy("%s", remedy)
	}
	switch {
	case code == "RequestTimeTooSkewed":
		return refuse("refuses requests, because this machine's clock is not right", "set the clock")
	case resp.StatusCode == http.StatusNotFound && (code == "NoSuchKey" || code == "" && resp.Request.Method == http.MethodHead):
		return errMissing // and no page of somebody else's
	case code == "NoSuchBucket":
		return refuse("is not there", "make the bucket, or set COVE_ARCHIVE_URL to another one")
	case code == "InvalidAccessKeyId" || resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return refuse("does not accept the credentials, or they may not do this",
			"set COVE_ARCHIVE_ACCESS_KEY and COVE_ARCHIVE_SECRET_KEY to a key that may list, read, write and delete there, and region in COVE_ARCHIVE_URL to the bucket's")
	case resp.StatusCode/100 == 3 || code == "AuthorizationHeaderMalformed":
		return refuse("is in another region or at another host", "set region and endpoint in COVE_ARCHIVE_URL to the bucket's")
	case resp.StatusCode == http.StatusInsufficientStorage || code == "QuotaExceeded" || code == "XMinioStorageFull":
		return cove.Wrap(cove.Exhausted, cause, "%s is full", s.about()).Remedy("make room there, and try again")
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout || code == "RequestTimeout":
		cause = errors.Join(cause, errAgain)
		return refuse("cannot answer now", "look at the server, and try again")
	}
	return refuse("refuses a request; the log has the cause", "see that it is an S3 server, and what its log says")
}

// errorCode is the word for an error in an answer, if there is one.
func errorCode(resp *http.Response) string {
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var said struct{ Code string }
	if err != nil || xml.Unmarshal(text, &said) != nil || len(said.Code) > 64 || !only(said.Code, lower+upper+digits+".") {
		return ""
	}
	return said.Code
}
