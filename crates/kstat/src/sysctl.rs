//! The FreeBSD text of kstats: `sysctl kstat.zfs`, one statistic per line.
//!
//! ```text
//! kstat.zfs.misc.arcstats.hits: 8019094        sysctl kstat.zfs
//! kstat.zfs.misc.arcstats.hits=8019094         sysctl -e kstat.zfs
//! kstat.zfs.tank.dataset.objset-0x36.reads: 5
//! ```
//!
//! A name consists of `kstat.`, the module with dots instead of slashes, the class, the kstat and
//! the statistic (`module/os/freebsd/spl/spl_kstat.c`). A pool name may contain dots, so the parts
//! are taken from the right. The text has no times and no types. A raw kstat has no statistics: its
//! name ends with its own name after the class `misc`, and its value may span lines. It is skipped,
//! as is every line that does not begin with `kstat.`.

use std::collections::HashMap;

use crate::error::{ParseError, ParseErrorKind};
use crate::kstat::{Entry, Kstat, Value};
use crate::limits;
use crate::named::Lines;

const PREFIX: &[u8] = b"kstat.";

/// The class of raw kstats. A named kstat has its own name here.
const RAW_CLASS: &str = ".misc";

/// Whether any line of `input` begins with `kstat.`.
pub fn recognises(input: &[u8]) -> bool {
    input.split(|&byte| byte == b'\n').any(|line| line.starts_with(PREFIX))
}

/// Reads every kstat in `input`, in order of first appearance.
///
/// # Errors
/// A `kstat.` line has no value or fewer than the five parts of a name, or a bound is exceeded.
pub fn parse(input: &[u8]) -> Result<Vec<Kstat>, ParseError> {
    limits::check_length(input)?;
    let mut kstats: Vec<Kstat> = Vec::new();
    let mut positions: HashMap<&str, usize> = HashMap::new();
    let mut lines = Lines::new(input);
    while let Some(bytes) = lines.next_bytes() {
        if !bytes.starts_with(PREFIX) {
            continue;
        }
        let line = lines.checked(bytes)?;
        let (path, text) = split_value(line)
            .ok_or_else(|| lines.error(ParseErrorKind::Row("expected `: ` or `=` and a value")))?;
        let (table, statistic) = path.rsplit_once('.').unwrap_or((path, ""));
        if table.ends_with(RAW_CLASS) {
            continue;
        }
        let position = match positions.get(table) {
            Some(&position) => position,
            None => {
                if kstats.len() == limits::MAX_KSTATS {
                    return Err(lines.error(ParseErrorKind::TooManyKstats));
                }
                let kstat = table_of(table).ok_or_else(|| {
                    lines.error(ParseErrorKind::Row("expected kstat.module.class.kstat.statistic"))
                })?;
                kstats.push(kstat);
                positions.insert(table, kstats.len() - 1);
                kstats.len() - 1
            }
        };
        let entries = &mut kstats[position].entries;
        if entries.len() == limits::MAX_ROWS {
            return Err(lines.error(ParseErrorKind::TooManyRows));
        }
        entries.push(Entry { name: statistic.to_owned(), value: Value::infer(text) });
    }
    Ok(kstats)
}

/// Splits at the first `: ` or `=`, or at a colon that ends the line, whose value is empty.
fn split_value(line: &str) -> Option<(&str, &str)> {
    let colon = line.find(": ").or_else(|| line.ends_with(':').then(|| line.len() - 1));
    let at = match (colon, line.find('=')) {
        (Some(colon), Some(equals)) => colon.min(equals),
        (Some(at), None) | (None, Some(at)) => at,
        (None, None) => return None,
    };
    Some((&line[..at], line[at + 1..].trim()))
}

fn table_of(path: &str) -> Option<Kstat> {
    let (rest, name) = path.rsplit_once('.')?;
    let (rest, class) = rest.rsplit_once('.')?;
    let module = rest.strip_prefix("kstat.")?;
    if name.is_empty() || module.is_empty() {
        return None;
    }
    // Only the first dot can stand for the slash of `zfs/<pool>`: later dots belong to the pool.
    let mut kstat = Kstat::new(&module.replacen('.', "/", 1), name);
    kstat.class = class.to_owned();
    Some(kstat)
}
