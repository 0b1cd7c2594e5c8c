// Package config reads the settings of Cove into one value, [Config], from
// four places of rising weight: defaults, the file, the environment, flags.
//
// A setting is declared once, as a field of Config with tags. Parsing, the
// strict file, --print-config, .env.example and docs/configuration.md all
// follow from the tags.
//
// It is the only package that looks at the environment. It must not act on
// what it reads: it opens no socket, makes no directory and knows no provider,
// store or engine. Every error is one sentence that names the setting as the
// user wrote it, says what is wrong and what to do.
package config
