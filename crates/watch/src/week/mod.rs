//! The last week in a file: a row a minute, with mean, minimum and maximum of each series.
//!
//! The file is a database of `redb` with one commit a minute. A commit is complete or absent, even
//! if the process is killed. The file has three bounds: a week of rows, `BYTES_MAX` bytes of them,
//! and `NAMES_MAX` series; the oldest rows go first. A mount is known by its path, so its series
//! continue under the same name after a restart.
//!
//! The file is untrusted input. It is checked completely when it is opened. A damaged file is
//! renamed, and a file of another kind is refused (`open`).
//!
//! Locks: that of the names, a leaf, never held while the file is read or written.

mod minute;
mod open;
mod row;

use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use hashbrown::HashMap;
use parking_lot::Mutex;
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use serde_json::{Map, Value, json};

use crate::history::Means;
pub use minute::MINUTE_MS;
pub(crate) use minute::{Minute, Over};
pub use open::{Opened, Unusable};
use row::Spread;

/// How long rows are kept.
pub const KEPT_MS: u64 = 7 * 24 * 3600 * 1000;
/// Bytes of all rows at most; the file is at most twice as large and a little more.
const BYTES_MAX: u64 = 48 << 20;
/// Series that have a number at most.
const NAMES_MAX: usize = 4096;
/// Mounts that are known at most.
const MOUNTS_MAX: usize = 1024;
/// Rows that are later than now by more than this come from a wrong clock.
const AHEAD_MS: u64 = 3_600_000;
/// Points of an answer at most.
const POINTS_MAX: u64 = 800;

/// Minutes since the Unix epoch, each with its row.
const ROWS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("rows");
/// Series by their numbers.
const NAMES: TableDefinition<'_, u16, &str> = TableDefinition::new("series");
/// Mounts by their numbers.
const MOUNTS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("mounts");

/// The week.
#[derive(Debug)]
pub struct Week {
    database: Database,
    path: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Series by their numbers; an empty name is of a number that only rows have.
    names: Vec<Option<String>>,
    numbers: HashMap<String, u16>,
    mounts: Vec<Option<PathBuf>>,
    /// Of all rows.
    bytes: u64,
    oldest_minute: Option<u32>,
}

impl Week {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    ///
    /// [`Unusable`], in words: it is in use, it is something else, or it cannot be read or written.
    pub fn open(path: &Path) -> Result<Opened, Unusable> {
        open::open(path)
    }

    fn new(database: Database, path: &Path) -> Result<Self, redb::Error> {
        let known = Mutex::new(Known::read(&database)?);
        Ok(Self { database, path: path.to_owned(), known })
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Mounts by the numbers that their series begin with, from 1.
    pub fn mounts(&self) -> Vec<Option<PathBuf>> {
        self.known.lock().mounts.clone()
    }

    /// When the oldest row began.
    pub fn oldest_ms(&self) -> Option<u64> {
        self.known.lock().oldest_minute.map(|minute| u64::from(minute) * MINUTE_MS)
    }

    /// Writes a minute, with the mounts known by now.
    pub(crate) fn put(&self, over: &Over, mounts: &[PathBuf]) -> Result<(), redb::Error> {
        let Ok(minute) = u32::try_from(over.begins_ms / MINUTE_MS) else { return Ok(()) };
        // Only one transaction runs at a time, so no other one assigns numbers meanwhile.
        let transaction = self.database.begin_write()?;
        let (row, new_names, new_mounts) = self.known.lock().number(over, mounts);
        let bytes = row::encode(&row).map_err(redb::Error::from)?;
        let change;
        {
            let mut names = transaction.open_table(NAMES)?;
            for (number, name) in &new_names {
                names.insert(number, name.as_str())?;
            }
            let mut table = transaction.open_table(MOUNTS)?;
            for (number, path) in &new_mounts {
                table.insert(number, path.as_os_str().as_bytes())?;
            }
            let mut rows = transaction.open_table(ROWS)?;
            let all = self.known.lock().bytes;
            change = replace(&mut rows, minute, &bytes, all)?;
        }
        transaction.commit()?;
        // After a restart, the number of a name that is not in the file would belong to another.
        let mut known = self.known.lock();
        new_names.iter().for_each(|(number, name)| known.name(*number, name));
        new_mounts.into_iter().for_each(|(number, path)| known.mount(number, path));
        (known.bytes, known.oldest_minute) = change;
        Ok(())
    }

    /// The rows between two moments, in at most this many points, as JSON: `times`, the end of
    /// each in milliseconds, and of each series by name `mean`, and `min` and `max` if they
    /// differ.
    pub(crate) fn points(
        &self,
        from_ms: u64,
        to_ms: u64,
        points: u64,
    ) -> Result<Value, redb::Error> {
        // At most a week exists; of a longer span, its end counts.
        let to = to_ms.div_ceil(MINUTE_MS);
        let minutes = to.saturating_sub(from_ms / MINUTE_MS).clamp(1, KEPT_MS / MINUTE_MS + 60);
        let from = to.saturating_sub(minutes);
        let step = minutes.div_ceil(points.clamp(1, POINTS_MAX)).max(1);
        let mut points: Vec<(u64, Vec<Option<Point>>)> = Vec::new();
        self.each(from, to, |minute, row| {
            let end_ms = (minute - minute % step + step) * MINUTE_MS;
            if points.last().is_none_or(|(last, _)| *last != end_ms) {
                points.push((end_ms, Vec::new()));
            }
            if let Some((_, series)) = points.last_mut() {
                row.iter().for_each(|(number, spread)| Point::add(series, *number, spread));
            }
        })?;
        let times: Vec<u64> = points.iter().map(|(time, _)| *time).collect();
        let known = self.known.lock();
        let mut series = Map::new();
        for (number, name) in known.names.iter().enumerate() {
            let own: Vec<Option<Spread>> = points
                .iter()
                .map(|(_, all)| all.get(number)?.as_ref().map(Point::spread))
                .collect();
            let has_name = name.as_ref().filter(|name| !name.is_empty());
            if let Some(name) = has_name.filter(|_| own.iter().any(Option::is_some)) {
                series.insert(name.clone(), columns(&own));
            }
        }
        Ok(json!({ "step_ms": step * MINUTE_MS, "times": times, "series": series }))
    }

    /// Means of the minutes that have a part of this time.
    pub(crate) fn means(&self, from_ms: u64, to_ms: u64) -> Result<Means, redb::Error> {
        let mut points: Vec<Option<Point>> = Vec::new();
        let mut steps = 0;
        self.each(from_ms / MINUTE_MS, to_ms.div_ceil(MINUTE_MS), |_, row| {
            steps += 1;
            row.iter().for_each(|(number, spread)| Point::add(&mut points, *number, spread));
        })?;
        let known = self.known.lock();
        let named = known.names.iter().zip(&points);
        let values = named.filter_map(|(name, point)| {
            let name = name.clone().filter(|name| !name.is_empty())?;
            Some((name, f64::from(point.as_ref()?.spread().mean)))
        });
        Ok(Means { steps, values: values.collect() })
    }

    /// Calls with each minute from one to before another, in order, and its row.
    fn each(
        &self,
        from: u64,
        to: u64,
        mut call: impl FnMut(u64, row::Row),
    ) -> Result<(), redb::Error> {
        let bound = |minute: u64| u32::try_from(minute).unwrap_or(u32::MAX);
        let rows = match self.database.begin_read()?.open_table(ROWS) {
            Ok(rows) => rows,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for found in rows.range(bound(from)..bound(to))? {
            let (minute, bytes) = found?;
            // A missing row is a minute without measurement.
            if let Some(row) = row::decode(bytes.value()) {
                call(u64::from(minute.value()), row);
            }
        }
        Ok(())
    }
}

/// Inserts a row, and removes rows that are too old, over the bound, or in the future. Returns the
/// bytes left and the oldest minute.
fn replace(
    rows: &mut redb::Table<'_, u32, &[u8]>,
    minute: u32,
    bytes: &[u8],
    mut all: u64,
) -> Result<(u64, Option<u32>), redb::Error> {
    if let Some(old) = rows.insert(minute, bytes)? {
        all = all.saturating_sub(old.value().len() as u64);
    }
    all += bytes.len() as u64;
    let minutes = |ms: u64| u32::try_from(ms / MINUTE_MS).unwrap_or(u32::MAX);
    let oldest = minute.saturating_sub(minutes(KEPT_MS));
    let newest = minute.saturating_add(minutes(AHEAD_MS));
    loop {
        let first = rows.first()?.map(|(minute, _)| minute.value());
        let last = rows.last()?.map(|(minute, _)| minute.value());
        let gone = match (first, last) {
            (Some(first), _) if first < oldest => first,
            (_, Some(last)) if last > newest => last,
            (Some(first), _) if all > BYTES_MAX && first != minute => first,
            _ => return Ok((all, first)),
        };
        if let Some(bytes) = rows.remove(gone)? {
            all = all.saturating_sub(bytes.value().len() as u64);
        }
    }
}

/// A point of a series in the answer.
fn columns(points: &[Option<Spread>]) -> Value {
    let column = |of: fn(&Spread) -> f32| -> Vec<Value> {
        points
            .iter()
            .map(|point| point.as_ref().map_or(Value::Null, |own| short(of(own))))
            .collect()
    };
    let mut answer = json!({ "mean": column(|spread| spread.mean) });
    if points.iter().flatten().any(|spread| spread.min != spread.max) {
        answer["min"] = column(|spread| spread.min).into();
        answer["max"] = column(|spread| spread.max).into();
    }
    answer
}

/// A number with four significant digits.
fn short(value: f32) -> Value {
    let value = f64::from(value);
    if value == 0.0 || !value.is_finite() {
        return json!(0);
    }
    #[expect(clippy::cast_possible_truncation, reason = "the digits of an f32")]
    let scale = 10_f64.powi(3 - value.abs().log10().floor() as i32);
    let rounded = (value * scale).round() / scale;
    #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and fits")]
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
        json!(rounded as i64)
    } else {
        json!(rounded)
    }
}

/// Minutes of one series on their way to a point.
#[derive(Debug, Clone, Copy)]
struct Point {
    sum: f64,
    count: f64,
    min: f32,
    max: f32,
}

impl Point {
    fn add(points: &mut Vec<Option<Self>>, number: u16, spread: &Spread) {
        let number = usize::from(number);
        if number >= NAMES_MAX {
            return;
        }
        if points.len() <= number {
            points.resize(number + 1, None);
        }
        let point = points[number].get_or_insert(Self {
            sum: 0.0,
            count: 0.0,
            min: f32::INFINITY,
            max: f32::NEG_INFINITY,
        });
        point.sum += f64::from(spread.mean);
        point.count += 1.0;
        point.min = point.min.min(spread.min);
        point.max = point.max.max(spread.max);
    }

    #[expect(clippy::cast_possible_truncation, reason = "four digits are shown")]
    fn spread(&self) -> Spread {
        Spread { mean: (self.sum / self.count) as f32, min: self.min, max: self.max }
    }
}

type Numbered<N, T> = Vec<(N, T)>;

impl Known {
    /// The names and mounts in the file. Those without a row are removed, so that series that come
    /// and go do not fill the file.
    fn read(database: &Database) -> Result<Self, redb::Error> {
        let transaction = database.begin_write()?;
        let mut known = Self::default();
        {
            let mut is_used = vec![false; NAMES_MAX];
            let rows = transaction.open_table(ROWS)?;
            for found in rows.iter()? {
                let (minute, bytes) = found?;
                known.oldest_minute.get_or_insert(minute.value());
                known.bytes += bytes.value().len() as u64;
                for (number, _) in row::decode(bytes.value()).unwrap_or_default() {
                    if let Some(is_used) = is_used.get_mut(usize::from(number)) {
                        *is_used = true;
                    }
                }
            }
            let mut names = transaction.open_table(NAMES)?;
            names.retain(|number, _| is_used.get(usize::from(number)).is_some_and(|used| *used))?;
            for found in names.iter()? {
                let (number, name) = found?;
                known.name(number.value(), name.value());
            }
            known.reserve(&is_used);
            let is_known = |number: u32| {
                let prefix = format!("m{}.", u64::from(number) + 1);
                known.numbers.keys().any(|name| name.starts_with(&prefix))
            };
            let mut mounts = transaction.open_table(MOUNTS)?;
            mounts.retain(|number, _| (number as usize) < MOUNTS_MAX && is_known(number))?;
            for found in mounts.iter()? {
                let (number, path) = found?;
                let path = std::ffi::OsString::from_vec(path.value().to_vec());
                known.mount(number.value(), PathBuf::from(path));
            }
        }
        transaction.commit()?;
        Ok(known)
    }

    fn name(&mut self, number: u16, name: &str) {
        let at = usize::from(number);
        self.names.resize(self.names.len().max(at + 1), None);
        self.names[at] = Some(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
    }

    fn mount(&mut self, number: u32, path: PathBuf) {
        let at = number as usize;
        self.mounts.resize(self.mounts.len().max(at + 1), None);
        self.mounts[at] = Some(path);
    }

    /// Keeps the numbers that rows have and no name: another series would get their past.
    fn reserve(&mut self, is_used: &[bool]) {
        for at in is_used.iter().enumerate().filter_map(|(at, used)| used.then_some(at)) {
            self.names.resize(self.names.len().max(at + 1), None);
            self.names[at].get_or_insert_default();
        }
    }

    /// A minute by numbers, with its new names and mounts, which count once the file has them.
    /// Series without room get no number.
    fn number(
        &self,
        over: &Over,
        mounts: &[PathBuf],
    ) -> (row::Row, Numbered<u16, String>, Numbered<u32, PathBuf>) {
        let mut new_mounts = Vec::new();
        for (at, path) in mounts.iter().enumerate().take(MOUNTS_MAX) {
            let known = self.mounts.get(at).and_then(Option::as_ref);
            if !path.as_os_str().is_empty() && known != Some(path) {
                #[expect(clippy::cast_possible_truncation, reason = "there are so few")]
                new_mounts.push((at as u32, path.clone()));
            }
        }
        let (mut row, mut new_names) = (Vec::with_capacity(over.series.len()), Vec::new());
        let is_free = |at: &usize| self.names.get(*at).is_none_or(Option::is_none);
        let mut free = (0..NAMES_MAX).filter(is_free).filter_map(|at| u16::try_from(at).ok());
        for (name, spread) in &over.series {
            let number = match self.numbers.get(name) {
                Some(number) => *number,
                None if is_of_unknown_mount(name) => continue,
                None => {
                    let Some(number) = free.next() else { continue };
                    new_names.push((number, name.clone()));
                    number
                }
            };
            row.push((number, *spread));
        }
        row.sort_by_key(|(number, _)| *number);
        (row, new_names, new_mounts)
    }
}

/// Whether a series is of a mount whose path has no room: another one may have its number later.
fn is_of_unknown_mount(name: &str) -> bool {
    let number = name.strip_prefix('m').and_then(|rest| rest.split_once('.')?.0.parse().ok());
    number.is_some_and(|number: usize| number > MOUNTS_MAX)
}

#[cfg(test)]
mod tests;
