"""Writes and syncs a file, writes another one without a sync, and kills the daemon.

usage: kill_after_write.py SYNCED WRITTEN DAEMON
"""

import os
import signal
import sys

synced, written, daemon = sys.argv[1:]
descriptor = os.open(synced, os.O_CREAT | os.O_WRONLY)
os.write(descriptor, b"synced")
os.fsync(descriptor)
other = os.open(written, os.O_CREAT | os.O_WRONLY)
os.write(other, b"written")
os.kill(int(daemon), signal.SIGKILL)
