"""Two mounts change one file: the later sync or close must fail with ESTALE.

usage: conflict.py OURS THEIRS
"""

import errno
import os
import sys

ours, theirs = sys.argv[1:]
with open(ours, "w") as file:
    file.write("before")
descriptor = os.open(ours, os.O_WRONLY)
os.pwrite(descriptor, b"ours", 0)
with open(theirs, "w") as file:
    file.write("theirs")
for call in os.fsync, os.close:
    try:
        call(descriptor)
    except OSError as error:
        if error.errno != errno.ESTALE:
            raise
        break
else:
    sys.exit("no call reported a conflict")
