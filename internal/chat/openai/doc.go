// Package openai asks one model behind an endpoint that speaks OpenAI's
// chat/completions: with tools, as a stream or in one piece.
//
// It believes nothing that the endpoint says. An answer is bounded in bytes and in
// time, a redirect is not followed, since it would take the key elsewhere, and what
// the endpoint writes about a fault is for the log, without the key.
//
// It must not run tools, keep a conversation, read settings or choose another model
// than the one it was given. It must not be linked into the lean program.
package openai
