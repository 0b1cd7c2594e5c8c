// Package tools holds adapters in other languages, for models and frameworks that
// have a shape of their own for a shell; README.md lists them. In Go there is only the
// test that runs them. It must not be imported.
package tools
