package msbtest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// claims are what a key says.
type claims struct {
	Exp       int64  `json:"exp"`
	Iat       int64  `json:"iat"`
	Namespace string `json:"namespace"`
}

// keyPrefix is before every key.
const keyPrefix = "msb_"

var keyEncoding = base64.RawURLEncoding

// Keygen makes a key for a namespace, or for all with "*".
func Keygen(serverKey, namespace string, now time.Time, life time.Duration) (string, error) {
	body, err := json.Marshal(claims{Exp: now.Add(life).Unix(), Iat: now.Unix(), Namespace: namespace})
	if err != nil {
		return "", err
	}
	text := keyEncoding.EncodeToString([]byte(`{"typ":"JWT","alg":"HS256"}`)) + "." + keyEncoding.EncodeToString(body)
	return keyPrefix + text + "." + keyEncoding.EncodeToString(sign(serverKey, text)), nil
}

func sign(serverKey, text string) []byte {
	h := hmac.New(sha256.New, []byte(serverKey))
	h.Write([]byte(text))
	return h.Sum(nil)
}

// allowed reads the key of a request, and returns its namespace.
func (s *Server) allowed(r *http.Request) (string, *failure) {
	if s.key == "" {
		return "*", nil
	}
	header := r.Header.Get("Proxy-Authorization")
	if header == "" {
		header = r.Header.Get("Authorization")
	}
	token, ok := strings.CutPrefix(strings.TrimPrefix(header, "Bearer "), keyPrefix)
	if !ok {
		return "", &failure{http.StatusUnauthorized, 1001, "Invalid credentials"}
	}
	bad := &failure{http.StatusUnauthorized, 1004, "Invalid or expired token"}
	dot := strings.LastIndexByte(token, '.')
	if dot < 0 {
		return "", bad
	}
	signature, err := keyEncoding.DecodeString(token[dot+1:])
	if err != nil || !hmac.Equal(signature, sign(s.key, token[:dot])) {
		return "", bad
	}
	_, body, _ := strings.Cut(token[:dot], ".")
	text, err := keyEncoding.DecodeString(body)
	var c claims
	if err != nil || json.Unmarshal(text, &c) != nil || c.Exp < time.Now().Unix() {
		return "", bad
	}
	return c.Namespace, nil
}
