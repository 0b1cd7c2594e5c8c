"""A call that goes on while others are made, both ways."""
