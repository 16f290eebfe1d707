//! The rows of the files or directories in a cache, in the chosen order.

use serde_json::Value;

use super::super::format::{self, bytes, count, percent};
use super::super::view::{Kind, Place, State, View};
use super::paint::Paint;
use super::place::title;
use super::rows::{Ranked, Row};

/// Columns of a figure.
const CELL: usize = 10;
/// Rows at most.
const ROWS_MAX: usize = 100;

/// The rows, so many columns wide.
pub(super) fn rows(view: &View, columns: usize, paint: Paint) -> Vec<Ranked> {
    let Some((number, place)) = view.chosen() else { return Vec::new() };
    let mut rows = vec![title(view, number, place, columns, paint).ranked(0)];
    let say = |text: &str| Row::new(columns).text(&format::cut(text, columns)).ranked(1);
    match objects(view, place) {
        Ok(objects) => table(&mut rows, view, objects, columns, paint),
        Err(why) => rows.push(say(&why)),
    }
    rows
}

/// The answer of the mount, or why there is none.
fn objects<'v>(view: &'v View, place: &Place) -> Result<&'v Value, String> {
    if place.kind == Kind::Zfs {
        return Err("OpenZFS does not report the files in its cache.".to_owned());
    }
    match view.objects_of(place) {
        _ if place.state == State::Gone => Err("It is no longer mounted.".to_owned()),
        None => Err("Reading the files in this cache.".to_owned()),
        Some(Ok(objects)) => Ok(objects),
        Some(Err(why)) => Err(format!("! {}", format::harmless(why))),
    }
}

fn table(rows: &mut Vec<Ranked>, view: &View, objects: &Value, columns: usize, paint: Paint) {
    let (kind, order) = view.shown_objects();
    let cell = |text: &str| format!("{text:>CELL$}");
    let heads = [
        ("bytes", "bytes"),
        ("reads", "reads"),
        ("", "hit %"),
        ("misses", "misses"),
        ("origin_bytes", "source"),
    ];
    let mut head = Row::new(columns);
    for (member, word) in heads {
        // A sign shows the order, because a colour alone would not on every terminal.
        let is_first = member == order.member();
        let text = if is_first { format!("{word}\u{2193}") } else { word.to_owned() };
        let style = if is_first { paint.title() } else { paint.faint() };
        head = head.piece(&[(&cell(&text), style)]);
    }
    rows.push(head.piece(&[(&format!("  {kind}"), paint.title())]).ranked(1));
    let mut all: Vec<&Value> = objects[kind].as_array().into_iter().flatten().collect();
    if all.is_empty() {
        let text = "  Nothing of a file is in this cache: read something through the mount.";
        rows.push(Row::new(columns).text(text).ranked(2));
    }
    // Stable: what is equal stays in the mount's order.
    all.sort_by_key(|row| std::cmp::Reverse(row[order.member()].as_u64()));
    for (at, row) in all.into_iter().take(ROWS_MAX).enumerate() {
        let rank = u8::try_from(at + 3).unwrap_or(u8::MAX);
        rows.push(line(row, columns).ranked(rank));
    }
    let seconds = objects["sampled_seconds"].as_f64().unwrap_or(0.0);
    let since = match objects["sampled_one_in"].as_u64() {
        _ if seconds < 1.0 => "Reads are counted from now on, while this is shown.".to_owned(),
        Some(one_in @ 2..) => {
            format!("Reads of the last {seconds:.0} s, estimated from one record in {one_in}.")
        }
        _ => format!("Reads of the last {seconds:.0} s, all of them."),
    };
    rows.push(Row::new(columns).piece(&[(&since, paint.faint())]).ranked(2));
}

fn line(row: &Value, columns: usize) -> Row {
    let number = |name: &str| row[name].as_f64();
    let share = number("hits").zip(number("reads")).filter(|(_, reads)| *reads > 0.0);
    let share = share.map(|(hits, reads)| 100.0 * hits / reads);
    let cells = [
        bytes(number("bytes")),
        count(number("reads")),
        percent(share),
        count(number("misses")),
        bytes(number("origin_bytes")),
    ];
    let mut line = Row::new(columns);
    for text in cells {
        line = line.text(&format!("{text:>CELL$}"));
    }
    let path = format::harmless(row["path"].as_str().unwrap_or("?"));
    let room = line.left().saturating_sub(2);
    line.text(&format!("  {}", format::cut(&path, room)))
}
