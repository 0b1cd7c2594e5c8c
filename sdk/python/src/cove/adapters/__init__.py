"""Sandboxes for the frameworks and models that others make, a module for each.

functions needs nothing else. The others need what they are for, which an extra of
this package installs; nothing of that is imported before one of them is.
"""

from __future__ import annotations


def missing(module: str, extra: str) -> ImportError:
    """The exception for a framework that is not installed."""
    return ImportError(f"cove.adapters.{module} needs a package that is not there: pip install 'cove-sandbox[{extra}]'", name=module)
