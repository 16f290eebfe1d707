//! The two illumos texts of kstats, as printed by `kstat(8)`.
//!
//! ```text
//! zfs:0:arcstats:hits<TAB>123         kstat -p: module:instance:name:statistic, tab, value
//!
//! module: zfs                             instance: 0         kstat: blocks
//! name:   arcstats                        class:    misc
//!         hits                            123
//! ```
//!
//! Both texts show the times as rows `crtime` and `snaptime`, in seconds since boot with a
//! fraction. `kstat -p` also shows the class as a row `class`. All three become fields of the
//! [`Kstat`] instead of entries.

use std::collections::HashMap;

use crate::error::{ParseError, ParseErrorKind};
use crate::kstat::{Entry, Kstat, Value};
use crate::limits;
use crate::named::Lines;

/// Whether the first line that is not blank looks like `kstat -p`.
pub fn recognises_parsable(input: &[u8]) -> bool {
    first_line(input).is_some_and(|line| row(line).is_some())
}

/// Whether the first line that is not blank begins a `kstat` block.
pub fn recognises_blocks(input: &[u8]) -> bool {
    first_line(input).is_some_and(|line| title(line, "module:", "instance:").is_some())
}

/// Reads the output of `kstat -p`. The kstats are in order of first appearance.
///
/// # Errors
/// A line is not `module:instance:name:statistic`, a tab and a value, or a bound is exceeded.
pub fn parse_parsable(input: &[u8]) -> Result<Vec<Kstat>, ParseError> {
    limits::check_length(input)?;
    let mut kstats: Vec<Kstat> = Vec::new();
    let mut positions: HashMap<&str, usize> = HashMap::new();
    let mut lines = Lines::new(input);
    while let Some(line) = lines.next_row()? {
        let row = row(line).ok_or_else(|| {
            lines.error(ParseErrorKind::Row("expected module:instance:name:statistic<TAB>value"))
        })?;
        let position = match positions.get(row.table) {
            Some(&position) => position,
            None => {
                let kstat = Kstat { instance: row.instance, ..Kstat::new(row.module, row.name) };
                push_bounded(&mut kstats, kstat).map_err(|kind| lines.error(kind))?;
                positions.insert(row.table, kstats.len() - 1);
                kstats.len() - 1
            }
        };
        add_row(&mut kstats[position], row.statistic, row.value)
            .map_err(|kind| lines.error(kind))?;
    }
    Ok(kstats)
}

/// Reads the blocks that `kstat` prints without `-p`.
///
/// # Errors
/// A row is outside a block, a block has no `name:` line, a row has no value, or a bound is
/// exceeded.
pub fn parse_blocks(input: &[u8]) -> Result<Vec<Kstat>, ParseError> {
    limits::check_length(input)?;
    let mut kstats: Vec<Kstat> = Vec::new();
    let mut lines = Lines::new(input);
    while let Some(line) = lines.next_row()? {
        if let Some((module, instance)) = title(line, "module:", "instance:") {
            let instance = instance
                .parse()
                .map_err(|_| lines.error(ParseErrorKind::Row("the instance is not a number")))?;
            let second = lines.next_row()?;
            let (name, class) =
                second.and_then(|line| title(line, "name:", "class:")).ok_or_else(|| {
                    lines.error(ParseErrorKind::Row("expected `name:` and `class:` here"))
                })?;
            let kstat = Kstat { instance, class: class.to_owned(), ..Kstat::new(module, name) };
            push_bounded(&mut kstats, kstat).map_err(|kind| lines.error(kind))?;
            continue;
        }
        let (statistic, value) = split_block_row(line)
            .ok_or_else(|| lines.error(ParseErrorKind::Row("expected a name and a value")))?;
        let kstat = kstats
            .last_mut()
            .ok_or_else(|| lines.error(ParseErrorKind::Row("a row before any `module:` line")))?;
        add_row(kstat, statistic, value).map_err(|kind| lines.error(kind))?;
    }
    Ok(kstats)
}

fn first_line(input: &[u8]) -> Option<&str> {
    let line = input.split(|&byte| byte == b'\n').find(|line| !line.trim_ascii().is_empty())?;
    if line.len() > limits::MAX_LINE_BYTES {
        return None;
    }
    std::str::from_utf8(line).ok()
}

/// A line of `kstat -p`.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// `module:instance:name`.
    table: &'a str,
    module: &'a str,
    instance: u32,
    /// Name of the kstat.
    pub name: &'a str,
    /// Name of the statistic.
    pub statistic: &'a str,
    /// Its value.
    pub value: &'a str,
}

/// A line of `kstat -p`: `zfs:0:arcstats:hits`, a blank, `123`.
pub fn row(line: &str) -> Option<Row<'_>> {
    let (path, value) = line.split_once(char::is_whitespace)?;
    let (module, rest) = path.split_once(':')?;
    let (instance, rest) = rest.split_once(':')?;
    let (name, statistic) = rest.split_once(':')?;
    let is_module = module.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let table = &path[..path.len() - statistic.len() - 1];
    let instance = instance.parse().ok().filter(|_| is_module)?;
    Some(Row { table, module, instance, name, statistic, value: value.trim() })
}

/// Both values of a title line: `module: zfs     instance: 0` as `("zfs", "0")`.
pub fn title<'a>(line: &'a str, left: &str, right: &str) -> Option<(&'a str, &'a str)> {
    let (value, rest) = line.strip_prefix(left)?.split_once(right)?;
    Some((value.trim(), rest.trim()))
}

/// Splits a name and a value, which are two blanks or a tab apart unless the name fills its
/// columns. Both may contain single blanks.
fn split_block_row(line: &str) -> Option<(&str, &str)> {
    let row = line.trim();
    let at = row.find("  ").or_else(|| row.find('\t')).or_else(|| row.find(' '))?;
    Some((&row[..at], row[at..].trim_start()))
}

fn push_bounded(kstats: &mut Vec<Kstat>, kstat: Kstat) -> Result<(), ParseErrorKind> {
    if kstats.len() == limits::MAX_KSTATS {
        return Err(ParseErrorKind::TooManyKstats);
    }
    kstats.push(kstat);
    Ok(())
}

fn add_row(kstat: &mut Kstat, statistic: &str, value: &str) -> Result<(), ParseErrorKind> {
    match (statistic, seconds_to_ns(value)) {
        ("crtime", Some(time_ns)) => kstat.crtime_ns = time_ns,
        ("snaptime", Some(time_ns)) => kstat.snaptime_ns = time_ns,
        ("class", _) if kstat.class.is_empty() => kstat.class = value.to_owned(),
        _ if kstat.entries.len() == limits::MAX_ROWS => return Err(ParseErrorKind::TooManyRows),
        _ => {
            kstat.entries.push(Entry { name: statistic.to_owned(), value: Value::infer(value) });
        }
    }
    Ok(())
}

/// `44.012` seconds as nanoseconds, exactly and without floating point.
fn seconds_to_ns(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole: u32 = whole.parse().ok()?;
    let fraction_ns: i64 = format!("{fraction:0<9}").parse().ok()?;
    i64::from(whole).checked_mul(1_000_000_000)?.checked_add(fraction_ns)
}
