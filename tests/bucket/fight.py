"""Two mounts count in one file: each adds one to what it reads, and is told if somebody was faster.
What counts is that no addition that was acknowledged is lost.

usage: fight.py SECONDS FILE FILE
"""

import errno
import os
import sys
import threading
import time

until = time.monotonic() + float(sys.argv[1])
files = sys.argv[2:]
done, told, trouble = [0] * len(files), [0] * len(files), []


def add(number, path):
    try:
        while time.monotonic() < until and not trouble:
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
                told[number] += 1
    except Exception as error:  # noqa: BLE001
        trouble.append(f"{path}: {error!r}")


with open(files[0], "w") as file:
    file.write("%020d" % 0)
threads = [threading.Thread(target=add, args=each) for each in enumerate(files)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
counts = {int(open(path).read()) for path in files}
print(f"{sum(done)} additions, {sum(told)} told of a conflict, found {sorted(counts)}")
if trouble or counts != {sum(done)} or 0 in done:
    sys.exit("; ".join(trouble) or "an addition was lost, or one side made none")
