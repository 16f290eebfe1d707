//! The change between two readings, column by column.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::column::{CACHED, Column, Columns, Formula, Quarters, Scale};
use super::snapshot::Snapshot;

/// 2³², the denominator of `meta`, `pd` and `pm`.
const FRACTION_ONE: f64 = 4_294_967_296.0;

/// A reading, an earlier one, and the seconds between them.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    earlier: Option<&'a Snapshot>,
    later: &'a Snapshot,
    elapsed_seconds: f64,
}

/// One field of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// The time, as the caller formatted it.
    Text(String),
    /// A number in the column's own unit: bytes, a count, per second, or percent.
    Number(f64),
    /// The source has none of the counters of this column.
    Absent,
}

impl<'a> Report<'a> {
    /// The average since the counters began. If the source has no start time, the report shows the
    /// totals, as if one second had passed.
    pub fn since_start(later: &'a Snapshot) -> Self {
        let elapsed_seconds = later.age_seconds().unwrap_or(1.0);
        Self { earlier: None, later, elapsed_seconds }
    }

    /// The change in the `elapsed_seconds` from `earlier` to `later`. [`Snapshot::seconds_since`]
    /// gives the most accurate time, and the caller's clock suffices.
    ///
    /// If the counters were reset in between (a module was reloaded, a mount restarted), the report
    /// begins at the reset, because differences would be meaningless.
    pub fn between(earlier: &'a Snapshot, later: &'a Snapshot, elapsed_seconds: f64) -> Self {
        if !later.same_counters(earlier) {
            return Self::since_start(later);
        }
        let usable = elapsed_seconds.is_finite() && elapsed_seconds > 0.0;
        let elapsed_seconds = if usable { elapsed_seconds } else { 1.0 };
        Self { earlier: Some(earlier), later, elapsed_seconds }
    }

    /// The seconds that rates are divided by.
    pub fn elapsed_seconds(&self) -> f64 {
        self.elapsed_seconds
    }

    /// The field of `column`; `time` is the text of the time column.
    pub fn cell(&self, column: &Column, time: &str) -> Cell {
        let number = match column.formula {
            Formula::Time => return Cell::Text(time.to_owned()),
            Formula::Rate(names) => self.growth(names).map(|sum| sum / self.elapsed_seconds),
            Formula::RateShare(part, whole) => percent(self.growth(part), self.growth(whole)),
            Formula::Spending(name) => self
                .growth(&[name])
                .map(|microdollars| microdollars / 1e6 * 3600.0 / self.elapsed_seconds),
            Formula::Level(names) => self.level(names),
            Formula::LevelShare(part, whole) => percent(self.level(part), self.level(whole)),
            Formula::Not(name) => self.later.get(name).map(|n| f64::from(u8::from(n == 0))),
            Formula::Target(quarters) => self.target(quarters),
            Formula::TargetShare(quarters) => percent(self.target(quarters), self.level(CACHED)),
        };
        number.map_or(Cell::Absent, Cell::Number)
    }

    /// The row of `columns` for programs.
    pub fn record(&self, columns: &Columns, time: &str) -> Record {
        Record(columns.iter().map(|column| (column, self.cell(column, time))).collect())
    }

    /// Sum of the levels. Missing rows count as 0, unless all are missing.
    fn level(&self, names: &[&str]) -> Option<f64> {
        sum(names.iter().map(|name| self.later.get(name)))
    }

    fn growth(&self, names: &[&str]) -> Option<f64> {
        sum(names.iter().map(|name| {
            let before = self.earlier.and_then(|earlier| earlier.get(name)).unwrap_or(0);
            Some(self.later.get(name)?.saturating_sub(before))
        }))
    }

    /// The share of a quarter is a product of two fractions: `meta` splits metadata from data, and
    /// `pd` and `pm` split MRU from MFU within each.
    fn target(&self, quarters: Quarters) -> Option<f64> {
        let fraction = |name| Some(self.later.get(name)? as f64 / FRACTION_ONE);
        let (meta, pd, pm) = (fraction("meta")?, fraction("pd")?, fraction("pm")?);
        let shares = [
            (quarters.mru_data, pd * (1.0 - meta)),
            (quarters.mru_metadata, pm * meta),
            (quarters.mfu_data, (1.0 - pd) * (1.0 - meta)),
            (quarters.mfu_metadata, (1.0 - pm) * meta),
        ];
        let share: f64 =
            shares.iter().filter(|(is_target, _)| *is_target).map(|(_, share)| share).sum();
        Some(share * self.level(CACHED)?)
    }
}

fn sum(numbers: impl Iterator<Item = Option<i128>>) -> Option<f64> {
    numbers
        .flatten()
        .fold(None, |sum: Option<i128>, number| Some(sum.unwrap_or(0).saturating_add(number)))
        .map(|sum| sum as f64)
}

/// 0 if the whole is 0, as in `arcstat`.
fn percent(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let (part, whole) = (part?, whole?);
    Some(if whole > 0.0 { 100.0 * part / whole } else { 0.0 })
}

/// A row for programs. It serialises as a map from column name to raw number, in column order.
///
/// Whole bytes, counts and flags are integers, other numbers are floating point, and an absent
/// field is null.
#[derive(Debug, Clone)]
pub struct Record(Vec<(&'static Column, Cell)>);

impl Record {
    /// The columns and their fields.
    pub fn cells(&self) -> impl Iterator<Item = (&'static Column, &Cell)> {
        self.0.iter().map(|(column, cell)| (*column, cell))
    }
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (column, cell) in &self.0 {
            match *cell {
                Cell::Text(ref text) => map.serialize_entry(column.name, text)?,
                Cell::Absent => map.serialize_entry(column.name, &None::<u8>)?,
                Cell::Number(number) if is_exact_integer(number, column.scale) => {
                    map.serialize_entry(column.name, &(number as i64))?;
                }
                Cell::Number(number) => map.serialize_entry(column.name, &number)?,
            }
        }
        map.end()
    }
}

/// Whether it is whole and below 2⁵³, where every integer has its own floating point number.
/// Percentages stay floating point, so that a column has one type.
fn is_exact_integer(number: f64, scale: Scale) -> bool {
    scale != Scale::Percent && number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0
}
