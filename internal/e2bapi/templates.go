package e2bapi

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// templateRoutes are the routes of the control API about templates.
func templateRoutes() map[string]action {
	return map[string]action{
		"GET /templates":             (*call).listTemplates,
		"GET /v2/templates":          (*call).listTemplates,
		"GET /templates/{id}":        (*call).getTemplate,
		"GET /templates/{id}/{what}": (*call).lookTemplate,
		"POST /templates/tags":       (*call).tagTemplate,
		"DELETE /templates/tags":     (*call).untagTemplate,
		"POST /v3/templates":         (*call).newTemplate,

		"GET /templates/{id}/files/{hash}":          (*call).buildFiles,
		"POST /v2/templates/{id}/builds/{build}":    func(c *call) error { return c.atBuild(c.startBuild) },
		"GET /templates/{id}/builds/{build}/status": func(c *call) error { return c.atBuild(c.buildStatus) },
	}
}

// What clients call the newest of a template.
const (
	tagDefault = "default"
	tagLatest  = "latest"
)

// templateName is the name of a template as the platform has it: what has a tag is
// called name.tag there.
func templateName(ref string) string {
	name, tag, _ := strings.Cut(ref, ":")
	if tag == "" || tag == tagDefault || tag == tagLatest {
		return name
	}
	return name + "." + tag
}

// templateAnswer is a template.
type templateAnswer struct {
	Template string    `json:"templateID"`
	Build    string    `json:"buildID"`
	Public   bool      `json:"public"`
	Aliases  []string  `json:"aliases"`
	Names    []string  `json:"names"`
	CPUs     int       `json:"cpuCount"`
	Memory   int       `json:"memoryMB"`
	Disk     int       `json:"diskSizeMB"`
	Created  time.Time `json:"createdAt"`
	Updated  time.Time `json:"updatedAt"`
	Status   string    `json:"buildStatus"`
	Version  string    `json:"envdVersion"`
}

// buildOf names what a template is now.
func buildOf(t cove.Template) string {
	const length = 32
	if len(t.Digest) > length {
		return t.Digest[:length]
	}
	return t.Name
}

func answerOf(t cove.Template) templateAnswer {
	names := []string{t.Name}
	return templateAnswer{
		Template: t.Name, Build: buildOf(t), Public: t.Shared, Aliases: names, Names: names, CPUs: 1,
		Created: t.CreatedAt, Updated: t.CreatedAt, Status: "ready", Version: envdVersion,
	}
}

// readyTemplates are those that sandboxes can be made from.
func (c *call) readyTemplates() (all []cove.Template, err error) {
	for t, err := range c.platform.Templates().List(c.r.Context()) {
		if err != nil {
			return nil, err
		}
		if t.Ready {
			all = append(all, t)
		}
	}
	return all, nil
}

// template finds one by what clients call it.
func (c *call) template(ref string) (cove.Template, error) {
	name := templateName(ref)
	if name == "code-interpreter-v1" {
		name = "base"
		if c.h.cfg.CodeTemplate != nil && c.h.cfg.CodeTemplate() != "" {
			name = c.h.cfg.CodeTemplate()
		}
	}
	all, err := c.readyTemplates()
	if err != nil {
		return cove.Template{}, err
	}
	if i := slices.IndexFunc(all, func(t cove.Template) bool { return t.Name == name }); i >= 0 {
		return all[i], nil
	}
	return cove.Template{}, noTemplate(ref)
}

func noTemplate(ref string) error {
	return cove.Errorf(cove.NotFound, "there is no template or snapshot %q", clip(ref))
}

func (c *call) listTemplates() error {
	all, err := c.readyTemplates()
	if err != nil {
		return err
	}
	answers := make([]templateAnswer, len(all))
	for i, t := range all {
		answers[i] = answerOf(t)
	}
	c.answer(http.StatusOK, answers)
	return nil
}

func (c *call) getTemplate() error {
	t, err := c.template(c.r.PathValue("id"))
	if err == nil {
		c.answer(http.StatusOK, answerOf(t))
	}
	return err
}

// lookTemplate answers two routes whose patterns overlap: whether a name is one of a
// template, and the tags of a template.
func (c *call) lookTemplate() error {
	id, what := c.r.PathValue("id"), c.r.PathValue("what")
	switch {
	case id == "aliases":
		return c.aliasOf(what)
	case what == "tags":
		return c.tagsOf(id)
	}
	return cove.Errorf(cove.NotFound, "there is no %s %s here", clip(c.r.Method), clip(c.r.URL.Path))
}

func (c *call) aliasOf(alias string) error {
	t, err := c.template(alias)
	if err == nil {
		c.answer(http.StatusOK, struct {
			Template string `json:"templateID"`
			Public   bool   `json:"public"`
		}{t.Name, t.Shared})
	}
	return err
}

// templateTag is a tag of a template.
type templateTag struct {
	Tag     string    `json:"tag"`
	Build   string    `json:"buildID"`
	Created time.Time `json:"createdAt"`
}

func (c *call) tagsOf(ref string) error {
	base, err := c.template(ref)
	if err != nil {
		return err
	}
	all, err := c.readyTemplates()
	if err != nil {
		return err
	}
	tags := []templateTag{{tagDefault, buildOf(base), base.CreatedAt}}
	for _, t := range all {
		if tag, ok := strings.CutPrefix(t.Name, base.Name+"."); ok {
			tags = append(tags, templateTag{tag, buildOf(t), t.CreatedAt})
		}
	}
	c.answer(http.StatusOK, tags)
	return nil
}

// maxTags bounds the tags of one call.
const maxTags = 32

// tagged checks the tags of a call about a template.
func tagged(field string, tags []string) error {
	if len(tags) == 0 || len(tags) > maxTags {
		return cove.InvalidField(field, "has %d of them; use 1 to %d", len(tags), maxTags)
	}
	for _, tag := range tags {
		if tag == tagDefault || tag == tagLatest {
			return cove.InvalidField(field, "%q is what a template without a tag is; build it anew instead", tag)
		}
		if err := cove.ValidTemplateName(tag); err != nil {
			return cove.InvalidField(field, "%q cannot be a tag; use lower-case letters, digits, dots and dashes", clip(tag))
		}
	}
	return nil
}

func (c *call) tagTemplate() error {
	var asked struct {
		Target string   `json:"target"`
		Tags   []string `json:"tags"`
	}
	if err := c.body(&asked); err != nil {
		return err
	}
	if err := tagged("tags", asked.Tags); err != nil {
		return err
	}
	target, err := c.template(asked.Target)
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(asked.Target, ":")
	for _, tag := range asked.Tags {
		if _, err := c.platform.Templates().Tag(c.r.Context(), target.Name, templateName(name+":"+tag), false); err != nil {
			return err
		}
	}
	c.answer(http.StatusCreated, struct {
		Build string   `json:"buildID"`
		Tags  []string `json:"tags"`
	}{buildOf(target), asked.Tags})
	return nil
}

func (c *call) untagTemplate() error {
	var asked struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}
	if err := c.body(&asked); err != nil {
		return err
	}
	if err := tagged("tags", asked.Tags); err != nil {
		return err
	}
	for _, tag := range asked.Tags {
		if err := c.platform.Templates().Delete(c.r.Context(), templateName(asked.Name+":"+tag), false); err != nil {
			return err
		}
	}
	c.done()
	return nil
}

// removeTemplate removes a template of the caller's tenant.
func (c *call) removeTemplate(name string) error {
	t, err := c.template(name)
	if err != nil {
		return err
	}
	if err := c.platform.Templates().Delete(c.r.Context(), t.Name, false); err != nil {
		return err
	}
	c.done()
	return nil
}
