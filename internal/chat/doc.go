// Package chat answers messages about data. What begins with SQL: or PYTHON: is run
// as it is and needs no model; anything else goes to a model, which may ask for four
// tools: list_datasets, get_schema, run_sql and run_python.
//
// All that it does it does through the [cove.Platform] of who asks. So a model can do
// nothing that its user may not, whatever it was told, by whomever: text in a table
// that looks like an instruction meets the same grants, the same policy and the same
// sandbox as one that a person wrote.
//
// A model is as little trusted as a program in a sandbox. How often it is asked, how
// many tools it gets at once, what it is told of a result and what is kept of what it
// says all have bounds.
//
// It must not reach data or a sandbox otherwise than by the platform, keep a thread,
// read settings, or know which model it is and how it is reached: that is
// [Model]'s matter.
package chat
