// Without an assembly file, functions could not be without a body.
