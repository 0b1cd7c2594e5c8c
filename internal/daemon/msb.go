//go:build !lean

package daemon

import (
	"context"
	"net/http"

	"github.com/cove-sandbox/cove/internal/msbapi"
)

// listenMSB opens the second door of microsandbox's clients, where there is one.
func (s *server) listenMSB(ctx context.Context) error {
	if s.OnDemand || s.cfg.Faces.MSBAddr == "" {
		return nil
	}
	l, err := listenTCP(ctx, "COVE_MSB_ADDR", s.cfg.Faces.MSBAddr)
	if err != nil {
		return err
	}
	s.msbDoor = s.bound(l)
	s.warnPlain(ctx, l)
	secured, err := s.withTLS(s.msbDoor)
	if err == nil {
		s.msbDoor = secured
	}
	return err
}

// msbURL is where microsandbox's clients find the server, if they have a door.
func (s *server) msbURL() string {
	switch {
	case s.msbDoor == nil:
		return ""
	case s.cfg.Server.TLSCert != "":
		return "https://" + s.msbDoor.Addr().String()
	}
	return "http://" + s.msbDoor.Addr().String()
}

// msbFace is what microsandbox's clients find.
func (s *server) msbFace() http.Handler {
	return msbapi.New(msbapi.Config{
		Platform: s.platform, Authenticate: s.keys.AuthenticateNamespaced, Watch: s.watch.Follow,
		Templates: s.parts.templates.Names, Isolation: s.parts.engine.Isolation, Logger: s.Logger,
		Authorize: s.parts.engine.Authorize, Bodies: s.bodies,
	})
}
