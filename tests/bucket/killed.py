"""Writes a file and syncs it, begins another, and kills the daemon in the middle of that.

usage: killed.py SYNCED WRITTEN DAEMON
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
