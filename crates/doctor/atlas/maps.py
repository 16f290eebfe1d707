"""Reads *.map: which file and function belongs to which subsystem."""

import re


class Map:
    """Subsystems with what they do, and the patterns that lead to them."""

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
                # A pattern of a file may hold a space before the pattern of the function.
                of_file, of_function = text.rsplit(" ", 1)
                self.rules.append((re.compile(of_file), re.compile(of_function), subsystem))
        self.known = {}

    def subsystem(self, path, function):
        """The first that matches."""
        key = (path, function)
        if key not in self.known:
            self.known[key] = next(
                (name for of_file, of_function, name in self.rules
                 if of_function.search(function) and of_file.search(path)), None)
        return self.known[key]

    def within(self, room, besides):
        """Puts the subsystems into a room, save those that the others have, too."""
        name = lambda subsystem: subsystem if subsystem in besides else room + subsystem
        self.does = {name(subsystem): does for subsystem, does in self.does.items()}
        self.named = {function: name(subsystem) for function, subsystem in self.named.items()}
        self.rules = [(of_file, of_function, name(subsystem))
                      for of_file, of_function, subsystem in self.rules]
