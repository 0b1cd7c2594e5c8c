// With a file of assembly, functions of other packages can be declared.
