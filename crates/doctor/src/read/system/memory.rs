//! Memory: the output of `free` in any language.

use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;
use crate::read::text::word_lists;

/// Columns of `free` with their names in `/proc/meminfo`.
const FREE_COLUMNS: &str = "total=MemTotal_bytes free=MemFree_bytes shared=Shmem_bytes available=MemAvailable_bytes \
     buffers=Buffers_bytes cached=Cached_bytes used=used_bytes buff/cache=buff_cache_bytes";

/// The columns by place, for languages other than English: buffers and cache as one column, or as
/// two (`free -w`).
const FREE_PLACES: [&[&str]; 2] = [
    &["total", "used", "free", "shared", "buff/cache", "available"],
    &["total", "used", "free", "shared", "buffers", "cached", "available"],
];

/// The cells of a row of `free` after its name. The name may contain blanks (`Partition
/// d'échange:`).
fn free_cells(text: &str) -> Option<(&str, Vec<&str>)> {
    let (name, rest) = text.split_once(':')?;
    let cells: Vec<&str> = rest.split_whitespace().collect();
    let figures = cells.iter().all(|cell| number::bytes(cell).is_some());
    let worded = name.chars().all(|c| !c.is_ascii_digit()) && name.len() < 40;
    (figures && worded && cells.len() >= 3).then_some((name.trim(), cells))
}

/// Whether a line names the columns of `free`: by its English words, or in any language by the row
/// below it.
pub(crate) fn is_free_heading(text: &str, next: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.starts_with(&["total", "used", "free"]) {
        return words.len() > 3;
    }
    let place = FREE_PLACES.iter().any(|places| places.len() == words.len());
    place
        && words.iter().all(|word| word.chars().all(|c| c.is_alphabetic() || "./".contains(c)))
        && free_cells(next).is_some_and(|(_, cells)| cells.len() == words.len())
}

/// Reads `free`. It does not print its unit. KiB is assumed, unless that gives less memory than any
/// host with ZFS has (256 MiB); then it was `free -m` or `-g`.
pub(crate) fn read_free(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut names: Vec<&str> = Vec::new();
    let mut unit = None;
    let mut memory_read = false;
    let mut table = reading.table("meminfo").taken(section.hint.time_s);
    for (at, line) in section.lines.iter().enumerate() {
        let text = line.text.trim();
        let next = section.lines.get(at + 1).map_or("", |line| line.text.trim());
        if text.is_empty() {
            continue;
        }
        if is_free_heading(text, next) {
            names = text.split_whitespace().collect();
            if names.first() != Some(&"total") || !names.contains(&"used") {
                let places = FREE_PLACES.iter().find(|places| places.len() == names.len());
                names = places.map_or(Vec::new(), |places| places.to_vec());
            }
            memory_read = false;
            continue;
        }
        if text.starts_with("-/+") {
            continue;
        }
        let Some((name, cells)) = free_cells(text).filter(|_| !names.is_empty()) else {
            reading.leave(line);
            continue;
        };
        let plain = number::plain(cells[0]);
        let unit_bytes = *unit.get_or_insert_with(|| free_unit(plain));
        let figure = |text: &str| match number::plain(text) {
            Some(value) => Some(value * unit_bytes),
            None => number::bytes(text),
        };
        let total = matches!(name, "Total" | "Gesamt" | "Low" | "High");
        for (column, cell) in names.iter().zip(&cells).filter(|_| !total) {
            if memory_read {
                table.gauge(&swap_name(column), figure(cell), line);
                continue;
            }
            if let Some(figure_name) = word_lists::other(FREE_COLUMNS, column) {
                table.gauge(figure_name, figure(cell), line);
            }
        }
        memory_read |= !total;
    }
    reading.push(table);
}

/// The name in `/proc/meminfo` for a column of the row for swap.
fn swap_name(column: &str) -> String {
    match column {
        "total" => "SwapTotal_bytes".to_owned(),
        "free" => "SwapFree_bytes".to_owned(),
        column => format!("swap_{column}_bytes"),
    }
}

fn free_unit(total: Option<f64>) -> f64 {
    match total {
        Some(total) if total < 256.0 => 1_073_741_824.0,
        Some(total) if total < 262_144.0 => 1_048_576.0,
        // `free -b` with 8 GiB or more: read as KiB, this would be 8 TiB or more.
        Some(total) if total >= 8_589_934_592.0 => 1.0,
        _ => 1024.0,
    }
}
