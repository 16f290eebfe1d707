//! A kstat whose rows are known beforehand: declared once, filled with values, written in order.
//!
//! Existing tools read OpenZFS's files by position and by name and fail on a missing row, so a
//! writer of such a file must give every row, in OpenZFS's order, whether or not it has anything
//! to say. A [`Table`] is the declaration; [`Rows`] is one filling of it, in which rows nobody set
//! are zero.

use thiserror::Error;

use crate::kstat::{Entry, Kstat, Value};
use crate::named;

/// What the number in a field counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Events or things, one each.
    Count,
    /// Bytes.
    Bytes,
    /// A fraction scaled so that 2³² is one.
    Fraction32,
    /// A percentage.
    Percent,
    /// 0 or 1.
    Flag,
}

/// Whether a field only grows (take differences) or is a level (take as it is).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Grows from the creation of the kstat on.
    Counter,
    /// The state at the time of reading.
    Gauge,
}

/// One row of a [`Table`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// OpenZFS's name.
    pub name: &'static str,
    /// kstat data type code: 4 (unsigned 64 bits) or 3 (signed).
    pub type_code: u8,
    /// Counter or gauge.
    pub kind: Kind,
    /// Unit of the value.
    pub unit: Unit,
    /// One line on what it says.
    pub doc: &'static str,
}

impl Field {
    /// A counter of events.
    pub const fn counter(name: &'static str, doc: &'static str) -> Self {
        Self { name, type_code: 4, kind: Kind::Counter, unit: Unit::Count, doc }
    }

    /// A counter of bytes.
    pub const fn byte_counter(name: &'static str, doc: &'static str) -> Self {
        Self { unit: Unit::Bytes, ..Self::counter(name, doc) }
    }

    /// A level in the given unit.
    pub const fn gauge(name: &'static str, unit: Unit, doc: &'static str) -> Self {
        Self { name, type_code: 4, kind: Kind::Gauge, unit, doc }
    }

    /// A level in bytes.
    pub const fn bytes(name: &'static str, doc: &'static str) -> Self {
        Self::gauge(name, Unit::Bytes, doc)
    }

    /// A level in bytes that can be negative.
    pub const fn signed_bytes(name: &'static str, doc: &'static str) -> Self {
        Self { type_code: 3, ..Self::bytes(name, doc) }
    }

    /// `value` with this field's type, at the nearest end of its range if it does not fit.
    fn typed(&self, value: i128) -> Value {
        if self.type_code == 3 {
            Value::I64(value.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
        } else {
            Value::U64(value.clamp(0, u64::MAX.into()) as u64)
        }
    }
}

/// A kstat of OpenZFS with its rows in order.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Module, the directory below `/proc/spl/kstat`.
    pub module: &'static str,
    /// Name, the file in it.
    pub name: &'static str,
    /// The number OpenZFS's kernel module gives it, for the header.
    pub kid: i64,
    /// The rows.
    pub fields: &'static [Field],
}

impl Table {
    /// Position of the row `name`. Linear: tables are looked into when counters are gathered for
    /// a reader, not when they are counted.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// The declaration of the row `name`.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// An empty filling: every row zero.
    pub fn rows(&'static self, crtime_ns: i64, snaptime_ns: i64) -> Rows {
        let values = vec![0; self.fields.len()];
        Rows { table: self, crtime_ns, snaptime_ns, values, appended: Vec::new() }
    }
}

/// A name that is not a row of the table it was set in: a slip in the caller's own names.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{table} has no field {name:?}; append it if it is an extra row")]
pub struct UnknownField {
    /// The table's name.
    pub table: &'static str,
    /// The name that was set.
    pub name: String,
}

/// One filling of a [`Table`].
#[derive(Debug, Clone)]
pub struct Rows {
    table: &'static Table,
    crtime_ns: i64,
    snaptime_ns: i64,
    values: Vec<i128>,
    appended: Vec<Entry>,
}

impl Rows {
    /// Sets one row. Values outside the row's type are written as the nearest it can hold.
    ///
    /// # Errors
    /// [`UnknownField`] if the table has no such row; nothing is changed then.
    pub fn set(&mut self, name: &str, value: impl Into<i128>) -> Result<(), UnknownField> {
        let position = self
            .table
            .position(name)
            .ok_or_else(|| UnknownField { table: self.table.name, name: name.to_owned() })?;
        self.values[position] = value.into();
        Ok(())
    }

    /// Sets many rows.
    ///
    /// # Errors
    /// [`UnknownField`] for the first name that is not a row; the ones before it are set.
    pub fn fill<'a, Number: Into<i128>>(
        &mut self,
        counters: impl IntoIterator<Item = (&'a str, Number)>,
    ) -> Result<(), UnknownField> {
        counters.into_iter().try_for_each(|(name, value)| self.set(name, value))
    }

    /// What a row is set to, as far as it fits 64 bits without a sign; `None` if there is none.
    pub fn value(&self, name: &str) -> Option<u64> {
        let value = self.values[self.table.position(name)?];
        Some(value.clamp(0, u64::MAX.into()) as u64)
    }

    /// Adds a row behind the table's own, where old and new tools tolerate it.
    pub fn append(&mut self, field: &Field, value: impl Into<i128>) {
        let value = field.typed(value.into());
        self.appended.push(Entry { name: field.name.to_owned(), value });
    }

    /// The kstat with every row of the table in order, then the appended ones.
    pub fn to_kstat(&self) -> Kstat {
        let mut kstat = Kstat::new(self.table.module, self.table.name);
        kstat.kid = self.table.kid;
        kstat.class = "misc".to_owned();
        kstat.crtime_ns = self.crtime_ns;
        kstat.snaptime_ns = self.snaptime_ns;
        let own = self.table.fields.iter().zip(&self.values).map(|(field, &value)| Entry {
            name: field.name.to_owned(),
            value: field.typed(value),
        });
        kstat.entries = own.chain(self.appended.iter().cloned()).collect();
        kstat
    }

    /// The Linux text of the kstat.
    pub fn to_text(&self) -> String {
        named::write(&self.to_kstat())
    }
}
