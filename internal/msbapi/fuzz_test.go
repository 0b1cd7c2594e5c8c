package msbapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/msbapi"
)

// FuzzRPC demands an answer in JSON, and no internal error, for whatever comes from
// somebody who may do nothing.
func FuzzRPC(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"sandbox.start","params":{"namespace":"a","sandbox":"b","config":{"image":"base","memory":1,"cpus":1,"volumes":["a:b:c"],"envs":["=x"]}}}`,
		`{"jsonrpc":"2.0","id":[],"method":"sandbox.metrics.get","params":{"namespace":"*"}}`, `[{}]`, `{"params":{}}`, "\x00",
	} {
		f.Add([]byte(seed))
	}
	face := msbapi.New(msbapi.Config{
		Platform: func(cove.Principal) cove.Platform { return nil },
		Authenticate: func(context.Context, string) (cove.Principal, func(), error) {
			return cove.Principal{Limits: cove.KeyLimit{Namespace: "-"}}, nil, nil // which no request can name
		},
	})
	f.Fuzz(func(t *testing.T, body []byte) {
		req := httptest.NewRequest(http.MethodPost, msbapi.RPCPath, strings.NewReader(string(body)))
		req.Header.Set("Authorization", "msb_x")
		w := httptest.NewRecorder()
		face.ServeHTTP(w, req)
		if w.Code < 400 || w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
