//! The description of one statistic.

/// The unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of events or things.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds; the metrics show seconds.
    Nanoseconds,
    /// A fraction scaled so that 2³² is one.
    Fraction32,
    /// 0 or 1.
    Flag,
    /// The number of a rule of the engine, an index into [`crate::RULES`].
    Rule,
}

/// Whether a statistic only grows (use differences) or is a level (use it directly).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Grows from the creation of the kstat.
    Counter,
    /// The state at the time of reading.
    Gauge,
}

/// The name of a label and its value.
pub type Label = (&'static str, &'static str);

/// One statistic: a row of a kstat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The name of the row.
    pub name: &'static str,
    /// kstat data type code: 4 (unsigned 64 bits) or 3 (signed).
    pub type_code: u8,
    /// Counter or gauge.
    pub kind: Kind,
    /// Unit of the value.
    pub unit: Unit,
    /// A description of one line.
    pub doc: &'static str,
    /// Its Prometheus family, if it has one.
    pub family: Option<&'static str>,
    /// The labels of its sample in that family.
    pub labels: &'static [Label],
    /// Its series in the live view, if it has one.
    pub series: Option<&'static str>,
}

impl Field {
    const fn new(kind: Kind, unit: Unit, name: &'static str, doc: &'static str) -> Self {
        let (family, labels, series) = (None, &[], None);
        Self { name, type_code: 4, kind, unit, doc, family, labels, series }
    }

    /// A counter of events.
    pub const fn counter(name: &'static str, doc: &'static str) -> Self {
        Self::new(Kind::Counter, Unit::Count, name, doc)
    }

    /// A counter of bytes.
    pub const fn byte_counter(name: &'static str, doc: &'static str) -> Self {
        Self::new(Kind::Counter, Unit::Bytes, name, doc)
    }

    /// A counter of nanoseconds.
    pub const fn ns_counter(name: &'static str, doc: &'static str) -> Self {
        Self::new(Kind::Counter, Unit::Nanoseconds, name, doc)
    }

    /// A number of things.
    pub const fn level(name: &'static str, doc: &'static str) -> Self {
        Self::new(Kind::Gauge, Unit::Count, name, doc)
    }

    /// A level in bytes.
    pub const fn bytes(name: &'static str, doc: &'static str) -> Self {
        Self::new(Kind::Gauge, Unit::Bytes, name, doc)
    }

    /// A level in bytes that can be negative.
    pub const fn signed_bytes(name: &'static str, doc: &'static str) -> Self {
        Self { type_code: 3, ..Self::bytes(name, doc) }
    }

    /// A level in nanoseconds.
    pub const fn ns(name: &'static str, doc: &'static str) -> Self {
        Self::new(Kind::Gauge, Unit::Nanoseconds, name, doc)
    }

    /// A fraction, 2³² being all.
    pub const fn fraction(name: &'static str, doc: &'static str) -> Self {
        Self::new(Kind::Gauge, Unit::Fraction32, name, doc)
    }

    /// 0 or 1.
    pub const fn flag(name: &'static str, doc: &'static str) -> Self {
        Self::new(Kind::Gauge, Unit::Flag, name, doc)
    }

    /// The number of a rule.
    pub const fn rule(name: &'static str, doc: &'static str) -> Self {
        Self::new(Kind::Gauge, Unit::Rule, name, doc)
    }

    /// The same statistic in a Prometheus family.
    #[must_use]
    pub const fn in_family(self, family: &'static str, labels: &'static [Label]) -> Self {
        Self { family: Some(family), labels, ..self }
    }

    /// The same statistic with a series in the live view.
    #[must_use]
    pub const fn charted(self, series: &'static str) -> Self {
        Self { series: Some(series), ..self }
    }

    /// Whether the name stands for all rows with this prefix.
    pub const fn is_prefix(&self) -> bool {
        matches!(self.name.as_bytes().last(), Some(b'_'))
    }
}
