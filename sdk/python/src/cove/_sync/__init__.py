"""The package for callers that wait. All but stream.py is made from cove._async."""
