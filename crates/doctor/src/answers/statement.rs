//! A line as clauses, with their order of importance.
//!
//! A line that is too long drops whole clauses or uses their brief form. A sentence is never taken
//! apart.

/// The longest first line, in characters, where it can be shortened.
pub(crate) const LINE: usize = 140;

/// The subject of a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClauseKind {
    /// The main statement.
    Head,
    /// An aside.
    Aside,
    /// Whether ZFS is among the users.
    Among,
    /// A missing fact.
    NotShown,
}

impl ClauseKind {
    /// A clause of a lower rank is dropped earlier.
    fn rank(self) -> usize {
        match self {
            Self::NotShown => 1,
            Self::Aside | Self::Among => 4,
            Self::Head => usize::MAX,
        }
    }
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clause {
    pub(crate) kind: ClauseKind,
    /// The full form.
    pub(crate) text: String,
    /// The form without asides.
    pub(crate) brief: String,
}

/// A line of the answer, its head first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    clauses: Vec<Clause>,
    /// Whether its head itself acquits ZFS or the CPU.
    acquits: bool,
}

/// From this rank on the clause about ZFS loses its figures; after it, all clauses lose their
/// asides.
const AMONG_IN_BRIEF: usize = 2;
const ALL_IN_BRIEF: usize = 3;
/// The head alone.
const HEAD_ALONE: usize = 4;

impl Statement {
    /// A line that begins with its main statement.
    pub(crate) fn new(text: impl Into<String>, brief: impl Into<String>) -> Self {
        let (text, brief) = (text.into(), brief.into());
        Self { clauses: vec![Clause { kind: ClauseKind::Head, text, brief }], acquits: false }
    }

    /// The same without asides.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::new(text.clone(), text)
    }

    /// The same line; `acquits` means that its head itself acquits ZFS or the CPU.
    pub(crate) fn acquitting(self, acquits: bool) -> Self {
        Self { acquits, ..self }
    }

    /// Whether its head acquits ZFS or the CPU.
    pub(crate) fn acquits(&self) -> bool {
        self.acquits
    }

    /// The line with a further clause.
    pub(crate) fn and(mut self, kind: ClauseKind, text: impl Into<String>) -> Self {
        let text = text.into();
        self.clauses.push(Clause { kind, brief: text.clone(), text });
        self
    }

    /// The line with further clauses.
    pub(crate) fn and_all(mut self, clauses: impl IntoIterator<Item = Clause>) -> Self {
        self.clauses.extend(clauses);
        self
    }

    /// All of it.
    pub(crate) fn whole(&self) -> String {
        self.at(0)
    }

    /// The line without the clauses up to a rank.
    fn at(&self, rank: usize) -> String {
        let stays = self.clauses.iter().filter(|clause| clause.kind.rank() > rank);
        let texts = stays.map(|clause| {
            let among = clause.kind == ClauseKind::Among && rank >= AMONG_IN_BRIEF;
            if among || rank >= ALL_IN_BRIEF { &clause.brief } else { &clause.text }
        });
        let texts: Vec<&str> = texts.map(String::as_str).collect();
        format!("{}.", texts.join("; "))
    }

    /// The line with its label, short enough for a glance, and whether `behind` still follows it. A
    /// long line first drops missing facts, then figures that the report repeats, then asides, then
    /// all but the head, and last `behind`.
    pub(crate) fn fitting(&self, label: &str, behind: &str) -> (String, bool) {
        let forms = || (0..=HEAD_ALONE).map(|rank| self.at(rank));
        let full = forms().map(|form| (format!("{form}{behind}"), true));
        let mut all = full.chain(forms().map(|form| (form, false)));
        let room = LINE.saturating_sub(label.chars().count());
        let fits = all.find(|(text, _)| text.chars().count() <= room);
        fits.unwrap_or_else(|| (self.at(HEAD_ALONE), false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_drops_its_least_important_clause_first() {
        let possible = " Possible: a scrub or resilver is running (50%).";
        let line = |figures: &str| {
            Statement::plain("60% of the busy samples go to dd")
                .and(ClauseKind::NotShown, "how busy the machine is was not shown")
                .and_all([Clause {
                    kind: ClauseKind::Among,
                    text: format!("ZFS is among them: {figures}"),
                    brief: "ZFS is among them".to_owned(),
                }])
        };
        let all = line("all of it");
        assert_eq!(all.fitting("", "").0, all.whole());
        assert_eq!(
            all.fitting("", possible).0,
            format!("60% of the busy samples go to dd; ZFS is among them: all of it.{possible}")
        );
        let long = line("100% of the busy samples are in its threads or functions");
        assert_eq!(
            long.fitting("", possible).0,
            format!("60% of the busy samples go to dd; ZFS is among them.{possible}")
        );
        assert_eq!(
            long.fitting("", &possible.repeat(3)).0,
            "60% of the busy samples go to dd; ZFS is among them: 100% of the busy samples are in \
             its threads or functions."
        );
    }

    #[test]
    fn the_name_of_a_program_is_never_a_clause() {
        let name = "x; how busy was not shown";
        let line = Statement::plain(format!("{name} uses 2 CPUs"));
        assert_eq!(line.fitting("", "").0, format!("{name} uses 2 CPUs."));
    }
}
