"""Two mounts increment a number in one file. No acknowledged increment may be lost.

usage: two_writers.py SECONDS FILE FILE

A writer that was slower than the other gets ESTALE.
"""

import errno
import os
import sys
import threading
import time

until = time.monotonic() + float(sys.argv[1])
files = sys.argv[2:]
done, conflicts, errors = [0] * len(files), [0] * len(files), []


def add(number, path):
    try:
        while time.monotonic() < until and not errors:
            try:
                descriptor = os.open(path, os.O_RDWR)
                try:
                    count = int(os.pread(descriptor, 32, 0))
                    os.pwrite(descriptor, b"%020d" % (count + 1), 0)
                    os.fsync(descriptor)
                    done[number] += 1
                finally:
                    try:
                        os.close(descriptor)
                    except OSError:
                        pass
            except OSError as error:
                if error.errno != errno.ESTALE:
                    raise
                conflicts[number] += 1
    except Exception as error:  # noqa: BLE001
        errors.append(f"{path}: {error!r}")


with open(files[0], "w") as file:
    file.write("%020d" % 0)
threads = [threading.Thread(target=add, args=each) for each in enumerate(files)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
counts = {int(open(path).read()) for path in files}
print(f"{sum(done)} increments, {sum(conflicts)} conflicts, found {sorted(counts)}")
if errors or counts != {sum(done)} or 0 in done:
    sys.exit("; ".join(errors) or "an increment was lost, or one side made none")
