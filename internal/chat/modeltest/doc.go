// Package modeltest plays a model for tests: a server on loopback that speaks the
// wire format of OpenAI's chat/completions, streamed and not, and says what a script
// tells it to, faults included.
//
// It takes a request as strictly as the strictest of such servers: a call of a tool
// that nobody answered, arguments that are not JSON or a field that the API does not
// have is a bad request here, and Faults tells of it.
//
// It must not think, know tools or datasets, or be part of a program.
package modeltest
