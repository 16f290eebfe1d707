"""Reads *.map, which map files and functions to subsystems."""

import re


class Map:
    """Subsystems with descriptions, and the patterns of their files and functions."""

    def __init__(self, path):
        self.does, self.rules, self.named = {}, [], {}
        subsystem = None
        for at, line in enumerate(open(path), 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            if not line[0].isspace():
                subsystem, does = text.split(": ", 1)
                if self.does.setdefault(subsystem, does) != does:
                    raise SystemExit(f"{path}:{at}: {subsystem} does two things")
            elif text.startswith("+ "):
                for name in text[2:].split():
                    self.named.setdefault(name, subsystem)
            else:
                # The pattern of the file may contain spaces, that of the function none.
                of_file, of_function = text.rsplit(" ", 1)
                self.rules.append((re.compile(of_file), re.compile(of_function), subsystem))
        self.known = {}

    def subsystem(self, path, function):
        """Returns the first subsystem whose patterns match."""
        key = (path, function)
        if key not in self.known:
            self.known[key] = next(
                (name for of_file, of_function, name in self.rules
                 if of_function.search(function) and of_file.search(path)), None)
        return self.known[key]

    def within(self, prefix, shared):
        """Adds a prefix to the subsystems, except the shared ones."""
        name = lambda subsystem: subsystem if subsystem in shared else prefix + subsystem
        self.does = {name(subsystem): does for subsystem, does in self.does.items()}
        self.named = {function: name(subsystem) for function, subsystem in self.named.items()}
        self.rules = [(of_file, of_function, name(subsystem))
                      for of_file, of_function, subsystem in self.rules]
