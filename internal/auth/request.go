package auth

import (
	"net/http"
	"strings"
)

// FromRequest returns the secret that r shows in Authorization: Bearer or in
// X-API-Key, or "". A request that shows two is ambiguous and counts as one
// that shows none.
func FromRequest(r *http.Request) string {
	bearers, keys := r.Header.Values("Authorization"), r.Header.Values("X-Api-Key")
	if len(bearers)+len(keys) != 1 {
		return ""
	}
	if len(keys) == 1 {
		return keys[0]
	}
	scheme, secret, _ := strings.Cut(bearers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(secret, " ")
}
