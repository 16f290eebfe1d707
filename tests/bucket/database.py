"""An SQLite database with one writer: transactions, some of them rolled back, and a full check.

usage: database.py FILE
"""

import sqlite3
import sys

path = sys.argv[1]
database = sqlite3.connect(path, isolation_level=None)
database.execute("create table numbers (number integer primary key, square integer)")
for batch in range(10):
    database.execute("begin")
    for number in range(batch * 100, batch * 100 + 100):
        database.execute("insert into numbers values (?, ?)", (number, number * number))
    database.execute("rollback" if batch % 3 == 2 else "commit")
database.execute("vacuum")
database.close()
database = sqlite3.connect(path)
assert database.execute("pragma integrity_check").fetchone() == ("ok",)
rows = database.execute("select number, square from numbers order by number").fetchall()
assert len(rows) == 700 and all(square == number * number for number, square in rows)
