//! Properties of datasets and pools: `zfs get`, `zpool get`, `zfs list`, `zpool list`. They may
//! have `-H` and `-p`, headings or none, and any choice of columns.

use crate::evidence::Property;
use crate::pattern::Pattern;
use crate::read::text::clean::Line;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;
use crate::read::text::word_lists;

/// Properties that only pools have.
const OF_POOLS: &str = "capacity health ashift fragmentation freeing leaked dedupratio dedupditto expandsize \
     autoexpand autoreplace autotrim allocated free size bcloneused bclonesaved bcloneratio \
     failmode multihost listsnapshots cachefile altroot bootfs checkpoint";

/// Properties that identify a row without a heading.
const KNOWN: &str = "type creation used available referenced compressratio mounted quota reservation recordsize \
     volsize volblocksize mountpoint sharenfs checksum compression atime relatime devices exec \
     setuid readonly zoned snapdir aclinherit aclmode acltype canmount xattr copies version \
     utf8only normalization casesensitivity primarycache secondarycache usedbysnapshots \
     usedbydataset usedbychildren logbias dedup mlslabel sync dnodesize refcompressratio written \
     logicalused logicalreferenced volmode filesystem_limit snapshot_limit redundant_metadata \
     encryption keylocation keyformat pbkdf2iters special_small_blocks prefetch direct longname \
     keystatus encryptionroot";

/// Whether ZFS has a property of this name.
pub(crate) fn is_known(name: &str) -> bool {
    word_lists::has(KNOWN, name) || is_of_pool(name) || name.starts_with("feature@")
}

/// Whether only pools have the property.
pub(crate) fn is_of_pool(name: &str) -> bool {
    word_lists::has(OF_POOLS, name)
}

static SOURCE: Pattern =
    Pattern::new(r"^(.*?)\s+(local|default|temporary|received|-|inherited(?: from \S+)?)$");

/// Whether a line is `dataset property value [source]` without a heading.
pub(crate) fn is_row(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let owner = words.next().unwrap_or_default();
    words.next().is_some_and(is_known)
        && words.next().is_some()
        && !owner.ends_with([':', '|', '.', ','])
        && !owner.starts_with(['#', '-', '(', '['])
        && text.split_whitespace().count() <= 8
        && (SOURCE.is_match(text)
            || words.next().is_none()
                && text.split_whitespace().count() == 3
                && owner.len() > 1
                && !text.ends_with(['.', ',', ':'])
                && text.contains("  "))
}

/// Whether a word is a column of these lists.
fn is_column(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_uppercase()) && is_known(&whole_name(word))
}

/// Whether a line names the columns of `zfs get` or `zpool get`.
pub(crate) fn is_heading(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.contains(&"PROPERTY")
        && words.contains(&"VALUE")
        && words
            .iter()
            .all(|word| matches!(*word, "NAME" | "PROPERTY" | "VALUE" | "SOURCE" | "RECEIVED"))
}

/// Reads `zfs get` and `zpool get`.
pub(crate) fn read_get(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut names = vec!["NAME", "PROPERTY", "VALUE", "SOURCE"];
    let begun = reading.evidence.properties.len();
    let mut of_pool =
        section.hint.command.as_deref().is_some_and(|command| command.contains("zpool"));
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        if is_heading(text) {
            names = text.split_whitespace().collect();
            continue;
        }
        let Some(property) = row(text, &names, line, reading) else {
            reading.leave(line);
            continue;
        };
        of_pool |= is_of_pool(&property.name) || property.name.starts_with("feature@");
        reading.evidence.properties.push(property);
    }
    // `zpool get` and `zfs get` look alike; one property that only pools have decides for all rows.
    for property in &mut reading.evidence.properties[begun..] {
        property.of_pool = of_pool && !property.owner.contains('/');
    }
}

fn row(text: &str, names: &[&str], line: &Line<'_>, reading: &Reading<'_>) -> Option<Property> {
    let at = names.iter().position(|name| *name == "VALUE")?;
    let cells = cells(text, at + 1);
    let cell = |column: &str| cells.get(names.iter().position(|name| *name == column)?).copied();
    let rest = *cells.get(at)?;
    // `-H` separates columns with a tab; values such as dates contain blanks.
    let found = SOURCE.captures(rest).filter(|_| names[at..].contains(&"SOURCE"));
    let (value, origin) = found.map_or((rest, None), |found| {
        (found.get(1).map_or("", |value| value.as_str()), Some(found[2].to_owned()))
    });
    let (owner, name) = (cell("NAME"), cell("PROPERTY")?);
    let value = Some(value.trim()).filter(|value| !value.is_empty())?;
    let word_like =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    let property_like = name.bytes().all(|byte| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_@:.-#".contains(&byte)
    });
    let is_row = property_like && word_like(name) && owner.is_none_or(word_like);
    is_row.then(|| Property {
        owner: owner.unwrap_or_default().to_owned(),
        of_pool: false,
        name: name.to_owned(),
        value: value.to_owned(),
        origin,
        source: reading.at(line),
    })
}

/// Other names of a property that ZFS accepts: the columns of its lists.
const OTHER_NAMES: &str = "compress=compression rdonly=readonly recsize=recordsize volblock=volblocksize \
     avail=available refer=referenced reserv=reservation refreserv=refreservation \
     ratio=compressratio refratio=refcompressratio lused=logicalused lrefer=logicalreferenced \
     usedsnap=usedbysnapshots usedds=usedbydataset usedchild=usedbychildren \
     usedrefreserv=usedbyrefreservation case=casesensitivity redund_md=redundant_metadata \
     dnsize=dnodesize cap=capacity alloc=allocated frag=fragmentation expandsz=expandsize \
     expand=autoexpand replace=autoreplace listsnaps=listsnapshots dedup=dedupratio \
     ckpoint=checkpoint";

/// The name that `zfs get` shows for a property; ZFS accepts others too.
pub(crate) fn whole_name(name: &str) -> String {
    let name = name.to_lowercase();
    word_lists::other(OTHER_NAMES, &name).map_or_else(|| name.clone(), str::to_owned)
}

/// Whether a line names the columns of `zpool list` or `zfs list`.
pub(crate) fn is_list_heading(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.first() == Some(&"NAME")
        && words.len() > 1
        && words[1..].iter().filter(|word| is_column(word)).count() * 2 > words.len() - 1
        && !words.contains(&"PROPERTY")
}

/// Reads `zfs list` and `zpool list`; the devices of `zpool list -v` are skipped.
pub(crate) fn read_list(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut names: Vec<&str> = Vec::new();
    let mut heading_is_indented = false;
    let is_indented = |line: &Line<'_>| line.text.starts_with([' ', '\t']);
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        if text == "no pools available" || text == "no datasets available" {
            no_pools(text, line, reading);
            continue;
        }
        if is_list_heading(text) {
            names = text.split_whitespace().collect();
            heading_is_indented = is_indented(line);
            continue;
        }
        let cells = cells(text, names.len());
        if names.is_empty() || cells.len() < names.len() {
            // Devices and groups of `-v` have fewer cells than pools.
            let is_group = word_lists::has("logs cache spares special dedup mirror", cells[0]);
            if names.is_empty() || !is_indented(line) && !is_group {
                reading.leave(line);
            }
            continue;
        }
        let of_pool = names.iter().any(|name| word_lists::has("HEALTH FRAG CAP ALLOC", name));
        // Devices are indented below their pool, further than the heading.
        if of_pool && is_indented(line) && !heading_is_indented {
            continue;
        }
        for (column, cell) in names.iter().zip(&cells) {
            let name = match whole_name(column) {
                ratio if of_pool && ratio == "dedup" => "dedupratio".to_owned(),
                name => name,
            };
            if *cell != "-" && is_known(&name) {
                reading.property(cells[0], of_pool, &name, cell, line);
            }
        }
    }
}

/// The cells of a row; the last one may contain blanks. The result is shorter than `count` if cells
/// are missing.
fn cells(row: &str, count: usize) -> Vec<&str> {
    let (mut cells, mut rest) = (Vec::with_capacity(count), row);
    while cells.len() + 1 < count
        && let Some((cell, behind)) = rest.split_once(char::is_whitespace)
    {
        cells.push(cell);
        rest = behind.trim_start();
    }
    cells.push(rest);
    cells
}

/// Records that the host has no pool. That is an answer, not missing evidence.
pub(crate) fn no_pools(text: &str, line: &Line<'_>, reading: &mut Reading<'_>) {
    let mut table = reading.table("zpool_list");
    table.gauge("pools", Some(0.0), line);
    reading.push(table);
    let source = reading.at(line);
    reading.evidence.pools.push(crate::evidence::PoolLine {
        pool: String::new(),
        field: "state".to_owned(),
        text: text.to_owned(),
        source,
    });
}
