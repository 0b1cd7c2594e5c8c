package httpapi_test

import (
	"context"
	"iter"

	"github.com/cove-sandbox/cove"
)

func (f *fake) Datasets() cove.Datasets { return fakeDatasets{f} }
func (f *fake) Chats() cove.Chats       { return fakeChats{f} }

func (f *fake) Templates() cove.Templates { return fakeTemplates{f} }

type fakeTemplates struct{ *fake }

func (t fakeTemplates) List(context.Context) iter.Seq2[cove.Template, error] {
	return yields(t.fake, cove.TemplateList, args(), func(v *cove.Template, n int) { v.Name = string(numbered(n)) })
}

func (t fakeTemplates) Build(_ context.Context, req cove.TemplateRequest) (*cove.Template, error) {
	text := drained(req.Files)
	if req.OnOutput != nil && t.fail == nil {
		req.OnOutput(cove.Chunk{Stream: cove.Stdout, Data: []byte("step 1")})
	}
	return give[cove.Template](t.fake, cove.TemplateBuild, args(req.Name, req.Shared, text))
}

func (t fakeTemplates) Tag(_ context.Context, name, as string, shared bool) (*cove.Template, error) {
	return give[cove.Template](t.fake, cove.TemplateTag, args(name, as, shared))
}

func (t fakeTemplates) Delete(_ context.Context, name string, shared bool) error {
	return t.note(cove.TemplateDelete, args(name, shared))
}

type fakeDatasets struct{ *fake }

func (d fakeDatasets) List(_ context.Context, f cove.DatasetFilter) iter.Seq2[*cove.Dataset, error] {
	return pointers(limited(f.After, f.Limit, yields(d.fake, cove.DatasetList, args(f), func(v *cove.Dataset, n int) { v.ID = string(numbered(n)) }),
		func(v cove.Dataset) string { return v.ID }))
}

func (d fakeDatasets) Schema(_ context.Context, id string) (*cove.Dataset, error) {
	return give[cove.Dataset](d.fake, cove.DatasetSchema, args(id))
}

type fakeChats struct{ *fake }

func (c fakeChats) Send(ctx context.Context, req cove.ChatRequest) (*cove.ChatAnswer, error) {
	if c.chat != nil {
		return c.chat(ctx, req)
	}
	if tell := req.OnEvent; tell != nil && c.fail == nil {
		tell(cove.ChatEvent{Kind: cove.ChatToken, Text: "so "})
	}
	req.OnEvent = nil
	return give[cove.ChatAnswer](c.fake, cove.ChatSend, args(req))
}

func (c fakeChats) Messages(_ context.Context, f cove.MessageFilter) iter.Seq2[*cove.Message, error] {
	return pointers(limited(f.After, f.Limit, yields(c.fake, cove.ChatMessages, args(f), func(v *cove.Message, n int) { v.ID = numbered(n) }),
		func(v cove.Message) cove.ID { return v.ID }))
}

func (c fakeChats) Delete(_ context.Context, thread string) error {
	return c.note(cove.ChatDelete, args(thread))
}
