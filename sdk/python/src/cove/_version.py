"""The version of this package. A release of Cove and its package have the same."""

VERSION = "0.1.0"
