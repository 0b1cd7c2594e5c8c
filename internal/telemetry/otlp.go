package telemetry

import (
	"encoding/json"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// The forms of OTLP in JSON, as far as our spans need them. 64-bit numbers are
// texts there.
type (
	otlpTraces struct {
		ResourceSpans []otlpResource `json:"resourceSpans"`
	}
	otlpResource struct {
		Resource struct {
			Attributes []otlpAttribute `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []otlpScope `json:"scopeSpans"`
	}
	otlpScope struct {
		Scope struct {
			Name    string `json:"name"`
			Version string `json:"version,omitempty"`
		} `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		ParentID   string          `json:"parentSpanId,omitempty"`
		State      string          `json:"traceState,omitempty"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Events     []otlpEvent     `json:"events,omitempty"`
		Status     otlpStatus      `json:"status"`
	}
	otlpEvent struct {
		Time       string          `json:"timeUnixNano"`
		Name       string          `json:"name"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
	}
	otlpStatus struct {
		Code int `json:"code,omitempty"`
	}
	otlpAttribute struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

// otlpError is the number of an error among OTLP's status codes.
const otlpError = 2

// encoder returns what writes spans of one process, which has these attributes.
func encoder(scope, version string, process []attribute.KeyValue) func([]sdk.ReadOnlySpan) ([]byte, error) {
	return func(spans []sdk.ReadOnlySpan) ([]byte, error) {
		var r otlpResource
		var s otlpScope
		r.Resource.Attributes = otlpAttributes(process)
		s.Scope.Name, s.Scope.Version = scope, version
		for _, span := range spans {
			s.Spans = append(s.Spans, otlpSpanOf(span))
		}
		r.ScopeSpans = []otlpScope{s}
		return json.Marshal(otlpTraces{[]otlpResource{r}})
	}
}

func otlpSpanOf(s sdk.ReadOnlySpan) otlpSpan {
	at := s.SpanContext()
	out := otlpSpan{
		TraceID: at.TraceID().String(), SpanID: at.SpanID().String(), State: at.TraceState().String(),
		Name: s.Name(), Kind: int(s.SpanKind()), Start: nanos(s.StartTime()), End: nanos(s.EndTime()), Attributes: otlpAttributes(s.Attributes()),
	}
	if s.Parent().SpanID().IsValid() {
		out.ParentID = s.Parent().SpanID().String()
	}
	for _, e := range s.Events() {
		out.Events = append(out.Events, otlpEvent{Time: nanos(e.Time), Name: e.Name, Attributes: otlpAttributes(e.Attributes)})
	}
	if s.Status().Code == codes.Error {
		out.Status.Code = otlpError
	}
	return out
}

// otlpAttributes writes texts and whole numbers, which is all that we have.
func otlpAttributes(list []attribute.KeyValue) []otlpAttribute {
	var out []otlpAttribute
	for _, a := range list {
		value := map[string]any{"stringValue": a.Value.String()}
		if a.Value.Type() == attribute.INT64 {
			value = map[string]any{"intValue": strconv.FormatInt(a.Value.AsInt64(), 10)}
		}
		out = append(out, otlpAttribute{string(a.Key), value})
	}
	return out
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
