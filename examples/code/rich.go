package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/png"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// plotting is how long the first picture may take: without a template made for
// it, matplotlib looks at every font first.
const plotting = 2 * time.Minute

// picture lets Python draw, and looks at what comes back.
func (s show) picture(ctx context.Context) error {
	return s.with(ctx, cove.Spec{}, func(session *cove.Session) error {
		r, err := s.Contexts(session.ID).Run(ctx, cove.CodeRequest{Language: "python", Limits: cove.Limits{Wall: plotting}, Code: `
import matplotlib.pyplot as plt
plt.plot([1, 2, 3], [1, 4, 9], color="red")
plt.title("squares")
plt.show()
`})
		if err != nil {
			return err
		}
		if err := r.Err(); err != nil {
			return err
		}
		if len(r.Results) == 0 || r.Results[0]["image/png"] == "" {
			return errors.New("the code showed no picture")
		}
		pic, err := png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(r.Results[0]["image/png"])))
		if err != nil {
			return err
		}
		s.line("picture: larger than 100 by 100 %v, more than one colour %v", pic.Bounds().Dx() > 100 && pic.Bounds().Dy() > 100, colours(pic) > 1)
		return nil
	})
}

// colours counts them.
func colours(pic image.Image) int {
	seen := map[color.Color]bool{}
	for y := pic.Bounds().Min.Y; y < pic.Bounds().Max.Y; y++ {
		for x := pic.Bounds().Min.X; x < pic.Bounds().Max.X; x++ {
			seen[pic.At(x, y)] = true
		}
	}
	return len(seen)
}

// table lets Python compute a table, and takes its rows.
func (s show) table(ctx context.Context) error {
	return s.with(ctx, cove.Spec{}, func(session *cove.Session) error {
		r, err := s.code(ctx, session.ID, "python", `
import pandas as pd
frame = pd.DataFrame({"city": ["Oslo", "Rome", "Oslo"], "sales": [3, 4, 5]})
frame.groupby("city", as_index=False).sum()
`)
		if err != nil {
			return err
		}
		var table struct {
			Columns []string `json:"columns"`
			Rows    [][]any  `json:"rows"`
		}
		if err := json.Unmarshal([]byte(r.Results[0]["application/json"]), &table); err != nil {
			return err
		}
		s.line("table: %v", table.Columns)
		for _, row := range table.Rows {
			s.line("  %v", row)
		}
		s.line("table as HTML %v", strings.Contains(r.Results[0]["text/html"], "<table"))
		return nil
	})
}
