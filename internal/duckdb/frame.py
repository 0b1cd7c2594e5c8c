# Runs in a namespace of its own, after the reader; home is that of the code.
import os

try:
    home[name] = cove_frame(path)
finally:
    os.unlink(path)
