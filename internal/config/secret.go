package config

import "log/slog"

// Secret is a setting that must not be seen. Whatever prints, logs or encodes
// one shows a mask; only Reveal gives the text.
type Secret string

const mask = "********"

// Reveal returns the secret itself, for the one place that sends it.
func (s Secret) Reveal() string { return string(s) }

// String returns a mask, or "" for a secret that is not set.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return mask
}

// GoString is String, so that %#v shows no more.
func (s Secret) GoString() string { return s.String() }

// LogValue is String, for log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String, for JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
