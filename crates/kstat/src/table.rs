//! A kstat with a fixed list of rows: declared once, filled with values, written in order.
//!
//! Existing tools read OpenZFS's files by position and by name and fail on a missing row. So the
//! writer of such a file must give every row in OpenZFS's order, even without a value. A [`Table`]
//! is the declaration. [`Rows`] is one filling of it, in which unset rows are 0.

use thiserror::Error;

use crate::kstat::{Entry, Kstat, Value};
use crate::named;
pub use ogive_stats::{Field, Kind, Unit};

/// `value` with a field's type; a value outside its range becomes the nearest in it.
fn typed(field: &Field, value: i128) -> Value {
    if field.type_code == 3 {
        Value::I64(value.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    } else {
        Value::U64(value.clamp(0, u64::MAX.into()) as u64)
    }
}

/// A kstat of OpenZFS with its rows in order.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Module, the directory below `/proc/spl/kstat`.
    pub module: &'static str,
    /// Name, the file in it.
    pub name: &'static str,
    /// The number that OpenZFS's kernel module gives it, for the header.
    pub kid: i64,
    /// The rows.
    pub fields: &'static [Field],
}

impl Table {
    /// Position of the row `name`. The search is linear, because it runs for readers and never when
    /// a counter is counted.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// The declaration of the row `name`.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// A filling without any row.
    pub fn listing(&'static self, crtime_ns: i64, snaptime_ns: i64) -> Listing {
        Listing { table: self, crtime_ns, snaptime_ns, entries: Vec::new() }
    }

    /// A filling with every row 0.
    pub fn rows(&'static self, crtime_ns: i64, snaptime_ns: i64) -> Rows {
        let values = vec![0; self.fields.len()];
        Rows { table: self, crtime_ns, snaptime_ns, values, appended: Vec::new() }
    }
}

/// The name is not a row of the table, which is a mistake in the caller's own names.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{table} has no field {name:?}; append it if it is an extra row")]
pub struct UnknownField {
    /// The table's name.
    pub table: &'static str,
    /// The unknown name.
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
    /// Sets one row. A value outside the row's type is written as the nearest in its range.
    ///
    /// # Errors
    /// The table has no such row; nothing is changed then.
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
    /// The first name that is not a row; the names before it are set.
    pub fn fill<'a, Number: Into<i128>>(
        &mut self,
        counters: impl IntoIterator<Item = (&'a str, Number)>,
    ) -> Result<(), UnknownField> {
        counters.into_iter().try_for_each(|(name, value)| self.set(name, value))
    }

    /// The value of a row, if it fits 64 unsigned bits; `None` if the row does not exist.
    pub fn value(&self, name: &str) -> Option<u64> {
        let value = self.values[self.table.position(name)?];
        Some(value.clamp(0, u64::MAX.into()) as u64)
    }

    /// Adds a row after the table's own, where old and new tools tolerate it.
    pub fn append(&mut self, field: &Field, value: impl Into<i128>) {
        let value = typed(field, value.into());
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
            value: typed(field, value),
        });
        kstat.entries = own.chain(self.appended.iter().cloned()).collect();
        kstat
    }

    /// The Linux text of the kstat.
    pub fn to_text(&self) -> String {
        named::write(&self.to_kstat())
    }
}

/// A filling of a [`Table`] with only the rows that were set, in the table's order. A row that
/// stands for all names with its prefix ([`Field::is_prefix`]) can be set many times.
#[derive(Debug, Clone)]
pub struct Listing {
    table: &'static Table,
    crtime_ns: i64,
    snaptime_ns: i64,
    /// By position in the table.
    entries: Vec<(usize, Entry)>,
}

impl Listing {
    /// Sets one row.
    ///
    /// # Errors
    /// The table has no such row. The value is then appended after all others, so that no count is
    /// lost.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), UnknownField> {
        let begins = |field: &Field| field.is_prefix() && name.starts_with(field.name);
        let position =
            self.table.position(name).or_else(|| self.table.fields.iter().position(begins));
        let entry = Entry { name: name.to_owned(), value: Value::U64(value) };
        self.entries.push((position.unwrap_or(usize::MAX), entry));
        position
            .map(drop)
            .ok_or_else(|| UnknownField { table: self.table.name, name: name.to_owned() })
    }

    /// The Linux text of the kstat.
    pub fn to_text(mut self) -> String {
        self.entries.sort_by_key(|(position, _)| *position);
        let mut kstat = Kstat::new(self.table.module, self.table.name);
        kstat.crtime_ns = self.crtime_ns;
        kstat.snaptime_ns = self.snaptime_ns;
        kstat.entries = self.entries.into_iter().map(|(_, entry)| entry).collect();
        named::write(&kstat)
    }
}
