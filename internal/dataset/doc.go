// Package dataset knows which files of the host questions can be asked of: a
// directory with a registry.json, or with a folder for each dataset.
//
// A registry is read anew each time somebody asks, so that files come and go without
// a restart. It is
//
//	{"datasets": [{"id": "shop", "description": "Orders of a shop", "path": "shop",
//	  "files": [{"name": "orders", "path": "orders-2024.csv"}]}]}
//
// where path is the id if it is missing, and files are all data files of the folder.
// Without a registry.json every folder with a data file in it is a dataset, and its
// name is the id.
//
// The package looks at names, sizes and times only. It must not open a data file:
// what is in one is read in a sandbox.
package dataset
