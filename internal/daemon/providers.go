package daemon

import (
	"errors"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
)

// provision says where providers keep their state, and for how long sandboxes live.
type provision struct {
	dir  string
	once bool // few sandboxes will be made, and none outlives this process
	keep bool // sandboxes outlive this process where they can
	// templates are what sandboxes can be made from; nil: the base alone.
	templates *templates
	agent     string // as in Parts
}

// providers opens some providers of this build, with the settings in cfg.
func providers(cfg config.Config, at provision, names []string) ([]cove.Provider, error) {
	open, err := opening(cfg, at)
	if err != nil {
		return nil, err
	}
	var list []cove.Provider
	for _, name := range names {
		p, err := open[name]()
		if err != nil {
			for _, opened := range list {
				err = errors.Join(err, opened.Close())
			}
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}
