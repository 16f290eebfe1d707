//! A column of `arcstat`, and the user's choice of columns.

use thiserror::Error;

use super::columns::COLUMNS;

/// The entries on the lists, which are the whole of the breakdown by type and state and the "cache"
/// of the target columns.
pub(super) const CACHED: &[&str] = &[
    "anon_data",
    "anon_metadata",
    "mfu_data",
    "mfu_metadata",
    "mru_data",
    "mru_metadata",
    "uncached_data",
    "uncached_metadata",
];

/// The scale that shortens the numbers of a column for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Not a number (the time).
    Text,
    /// Thousands: K, M, G … of 1000.
    Count,
    /// K, M, G … of 1024 bytes.
    Bytes,
    /// A percentage, which is never shortened.
    Percent,
    /// Money, which is never shortened. It has as many decimals as fit.
    Dollars,
}

/// The quarters of the cache that a target covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quarters {
    pub(super) mru_data: bool,
    pub(super) mru_metadata: bool,
    pub(super) mfu_data: bool,
    pub(super) mfu_metadata: bool,
}

/// The formula of a column over a report. Names are fields of `arcstats`; those of `zfetchstats`
/// have the prefix `zfetch_`. Several names are added up.
#[derive(Debug, Clone, Copy)]
pub(super) enum Formula {
    /// The time of the reading.
    Time,
    /// Growth per second.
    Rate(&'static [&'static str]),
    /// Growth of the first sum as a percentage of the growth of the second.
    RateShare(&'static [&'static str], &'static [&'static str]),
    /// Microdollars, as dollars an hour.
    Spending(&'static str),
    /// The level at the later reading.
    Level(&'static [&'static str]),
    /// The level of the first sum as a percentage of the level of the second.
    LevelShare(&'static [&'static str], &'static [&'static str]),
    /// 1 if the field is 0, else 0.
    Not(&'static str),
    /// The target in bytes for these quarters of the cache, from `meta`, `pd` and `pm`.
    Target(Quarters),
    /// The same as a percentage of all four quarters.
    TargetShare(Quarters),
}

/// One column of `arcstat`.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Name, as in the header and in `-f`.
    pub name: &'static str,
    /// Width in characters.
    pub width: usize,
    /// The scale of its numbers.
    pub scale: Scale,
    /// A description of one line.
    pub description: &'static str,
    pub(super) formula: Formula,
}

impl Column {
    /// The column with this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        COLUMNS.iter().find(|column| column.name == name)
    }

    /// Whether it is about L2; [`Columns::all`] leaves such columns out if there is no L2.
    pub fn is_l2(&self) -> bool {
        self.name.starts_with("l2")
    }

    /// Whether it is about the cost of requests; such columns are shown for buckets only.
    pub fn is_cost(&self) -> bool {
        self.scale == Scale::Dollars
    }
}

/// A choice of columns cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ColumnError {
    /// No column has this name.
    #[error("no field {name:?}; {}", candidates(.near))]
    Unknown {
        /// The given name.
        name: String,
        /// Similar names, closest first; may be empty.
        near: Vec<&'static str>,
    },
    /// The list is empty.
    #[error("no fields given: name some, separated by commas, such as time,read,hit%,size,c")]
    Empty,
}

fn candidates(near: &[&str]) -> String {
    let all = || COLUMNS.iter().map(|column| column.name).collect::<Vec<_>>().join(" ");
    if near.is_empty() {
        format!("the fields are: {}", all())
    } else {
        format!("did you mean {}? (all fields: {})", near.join(", "), all())
    }
}

const DEFAULT: [&str; 11] =
    ["time", "read", "ddread", "ddh%", "dmread", "dmh%", "pread", "ph%", "size", "c", "avail"];
const EXTENDED: [&str; 11] =
    ["time", "mfu", "mru", "mfug", "mrug", "unc", "eskip", "mtxmis", "dread", "pread", "read"];
const PREFETCH: [&str; 11] = [
    "time", "ztotal", "zhits", "zahead", "zpast", "zmisses", "zmax", "zfuture", "zstride",
    "zissued", "zactive",
];

/// Chosen columns, in the order to show them; never empty.
#[derive(Debug, Clone)]
pub struct Columns(Vec<&'static Column>);

impl Columns {
    /// Reads a comma-separated list of names, as `-f` takes it.
    ///
    /// # Errors
    /// [`ColumnError`] for the first unknown name, or for no name at all.
    pub fn parse(list: &str) -> Result<Self, ColumnError> {
        Self::named(list.split(',').map(str::trim).filter(|name| !name.is_empty()))
    }

    /// The columns with these names.
    ///
    /// # Errors
    /// As [`Columns::parse`].
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, ColumnError> {
        let find = |name: &str| {
            Column::find(name)
                .ok_or_else(|| ColumnError::Unknown { name: name.to_owned(), near: nearest(name) })
        };
        let columns = names.into_iter().map(find).collect::<Result<Vec<_>, _>>()?;
        if columns.is_empty() { Err(ColumnError::Empty) } else { Ok(Self(columns)) }
    }

    /// The extended choice (`-x`): lists, ghosts, skips.
    pub fn extended() -> Self {
        Self::of_table(|column| EXTENDED.iter().position(|&name| name == column.name))
    }

    /// The prefetcher's columns (`-z`).
    pub fn prefetch() -> Self {
        Self::of_table(|column| PREFETCH.iter().position(|&name| name == column.name))
    }

    /// Every column (`-a`) without costs; those of L2 only if `with_l2`.
    pub fn all(with_l2: bool) -> Self {
        Self::of_table(|column| (!column.is_cost() && (with_l2 || !column.is_l2())).then_some(0))
    }

    /// The same, followed by the columns of costs.
    #[must_use]
    pub fn with_costs(mut self) -> Self {
        self.0.extend(COLUMNS.iter().filter(|column| column.is_cost()));
        self
    }

    /// The chosen columns.
    pub fn iter(&self) -> impl Iterator<Item = &'static Column> + '_ {
        self.0.iter().copied()
    }

    fn of_table(place: impl Fn(&Column) -> Option<usize>) -> Self {
        let placed = COLUMNS.iter().filter_map(|column| Some((place(column)?, column)));
        let mut placed: Vec<_> = placed.collect();
        placed.sort_by_key(|&(place, _)| place);
        Self(placed.into_iter().map(|(_, column)| column).collect())
    }
}

impl Default for Columns {
    /// `time read ddread ddh% dmread dmh% pread ph% size c avail`, OpenZFS's own default since 2.2.
    fn default() -> Self {
        Self::of_table(|column| DEFAULT.iter().position(|&name| name == column.name))
    }
}

/// At most five names that contain `name` or differ by at most two edits, closest first.
fn nearest(name: &str) -> Vec<&'static str> {
    // A name this long is too far from every column's.
    if name.len() > 16 {
        return Vec::new();
    }
    let name = name.to_lowercase();
    let mut near: Vec<(usize, &'static str)> = COLUMNS
        .iter()
        .filter_map(|column| {
            let edits = edit_distance(&name, column.name);
            let contains = name.len() > 1 && column.name.contains(name.as_str());
            (contains || edits <= 2 && edits < column.name.len()).then_some((edits, column.name))
        })
        .collect();
    near.sort_by_key(|&(edits, _)| edits);
    near.into_iter().take(5).map(|(_, name)| name).collect()
}

/// Levenshtein distance by rows.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, from) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (at, &to) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(from != to);
            diagonal = row[at + 1];
            row[at + 1] = substituted.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}
