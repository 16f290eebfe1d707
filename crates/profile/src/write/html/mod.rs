//! The interactive flame graph: one HTML file that any browser opens without a network. It has
//! zoom, search with the matching share, totals by module and by thread role, time slices, and the
//! difference from another profile.
//!
//! Frames below `PRUNED_SHARE` of both profiles are credited to their callers, which keeps sums
//! right and the page small. Names are outside input: they pass through JSON with `<` escaped and
//! become text only. The page's content security policy forbids everything outside it.

mod tree;

use std::io::{self, Write};

use serde::Serialize;

use crate::model::{Profile, Rate, View, WeightUnit};
use crate::roles::Roles;
use tree::{Entry, Tree};

/// The share of the whole below which a frame is not drawn: a fifth of a pixel.
const PRUNED_SHARE: f64 = 0.0001;
/// Samples in the page at most, after merging by time.
const ENTRIES_MAX: usize = 400_000;
/// Columns of the time map at most.
const COLUMNS_MAX: u64 = 1200;
/// Rows of the time map: each is a part of a column.
const ROWS: u64 = 50;
/// The shortest part, 20 ms: a column is a second.
const STEP_NS: u64 = 20_000_000;
/// Groups of threads shown; the rest is one.
const GROUPS_MAX: usize = 200;

/// The content of a page.
#[derive(Debug)]
pub struct Page<'p> {
    /// The title.
    pub title: &'p str,
    /// The samples.
    pub view: &'p View<'p>,
    /// The samples to compare with: an earlier profile.
    pub baseline: Option<&'p View<'p>>,
    /// The roles of threads.
    pub roles: &'p Roles,
}

#[derive(Serialize)]
struct Data<'d> {
    title: &'d str,
    facts: String,
    notes: Vec<String>,
    unit: &'static str,
    frames: Frames,
    modules: Vec<String>,
    nodes: Nodes,
    groups: Vec<String>,
    hints: Vec<String>,
    step_ns: u64,
    columns: u64,
    rows: u64,
    samples: String,
    base: Option<Base>,
}

#[derive(Serialize)]
struct Frames {
    name: Vec<String>,
    module: Vec<u32>,
    kind: String,
}

#[derive(Serialize)]
struct Nodes {
    parent: String,
    frame: String,
}

#[derive(Serialize)]
struct Base {
    samples: String,
}

/// Writes the whole page.
///
/// # Errors
///
/// The error of `out`.
pub fn write(out: &mut dyn Write, page: &Page<'_>) -> io::Result<()> {
    let title = ogive_text::escape(page.title);
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; form-action \
         'none'\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>{title}</title>\n\
         <style>body {{ margin: 0 }} @media (prefers-color-scheme: dark) {{ body {{ background: #181818 }} }}</style></head><body>\n"
    )?;
    write_fragment(out, page)?;
    out.write_all(b"</body></html>\n")
}

/// Writes the parts that another page needs to embed the flame graph: styles, data, script. That
/// page's policy must allow inline scripts and styles.
///
/// # Errors
///
/// The error of `out`.
pub fn write_fragment(out: &mut dyn Write, page: &Page<'_>) -> io::Result<()> {
    let data = data(page);
    let json = serde_json::to_string(&data).map_err(io::Error::other)?.replace('<', "\\u003c");
    write!(
        out,
        "<style>{}</style>\n<div class=\"ogive-flame\"><script type=\"application/json\">{json}\
         </script></div>\n<script>{}</script>\n",
        include_str!("flame.css"),
        include_str!("flame.js"),
    )
}

fn data<'d>(page: &Page<'d>) -> Data<'d> {
    let profile = page.view.profile();
    let groups = Groups::new(page);
    let mut tree = Tree::default();
    let mut entries = tree.add(page.view, &groups.of_profile(profile));
    let mut base = page
        .baseline
        .map(|baseline| tree.add(baseline, &groups.of_profile(baseline.profile())))
        .unwrap_or_default();
    tree.prune(&mut entries, &mut base, PRUNED_SHARE);
    let (step_ns, columns) = slice(profile, &mut entries);
    let mut samples = Varints::default();
    let mut last = 0;
    for entry in &entries {
        for number in
            [entry.bucket - last, u64::from(entry.group), u64::from(entry.node), entry.weight]
        {
            samples.push(number);
        }
        last = entry.bucket;
    }
    let mut before = Varints::default();
    for entry in &base {
        for number in [u64::from(entry.group), u64::from(entry.node), entry.weight] {
            before.push(number);
        }
    }
    let (mut parents, mut frames) = (Varints::default(), Varints::default());
    for (at, node) in tree.nodes.iter().enumerate().skip(1) {
        parents.push(at as u64 - u64::from(node.parent));
        frames.push(u64::from(node.frame));
    }
    Data {
        title: page.title,
        facts: facts(page),
        notes: profile.meta.notes.clone(),
        unit: unit_name(profile.meta.unit),
        frames: Frames { name: tree.names, module: tree.frame_modules, kind: tree.kinds },
        modules: tree.modules,
        nodes: Nodes { parent: parents.base64(), frame: frames.base64() },
        groups: groups.names,
        hints: groups.hints,
        step_ns,
        columns,
        rows: ROWS,
        samples: samples.base64(),
        base: page.baseline.map(|_| Base { samples: before.base64() }),
    }
}

/// Merges samples by time slice. Returns the length of a slice and the number of columns.
fn slice(profile: &Profile, entries: &mut Vec<Entry>) -> (u64, u64) {
    let duration_ns =
        if profile.meta.has_times { profile.meta.duration_ns.unwrap_or(0) } else { 0 };
    let first_ns = profile.meta.first_time_ns.unwrap_or(0);
    let mut step_ns = STEP_NS.max(profile.meta.time_step_ns);
    while duration_ns / step_ns / ROWS >= COLUMNS_MAX {
        step_ns *= 2;
    }
    loop {
        let last = duration_ns / step_ns;
        for entry in entries.iter_mut() {
            entry.bucket = (entry.time_ns.saturating_sub(first_ns) / step_ns).min(last);
        }
        entries.sort_unstable_by_key(|entry| (entry.bucket, entry.group, entry.node));
        let mut merged: Vec<Entry> = Vec::with_capacity(entries.len().min(ENTRIES_MAX));
        for entry in entries.iter() {
            match merged.last_mut() {
                Some(kept)
                    if (kept.bucket, kept.group, kept.node)
                        == (entry.bucket, entry.group, entry.node) =>
                {
                    kept.weight = kept.weight.saturating_add(entry.weight);
                }
                _ => merged.push(*entry),
            }
        }
        if merged.len() <= ENTRIES_MAX || last == 0 {
            *entries = merged;
            return (step_ns, last / ROWS + 1);
        }
        step_ns *= 2;
    }
}

/// Groups of threads: their roles, heaviest first.
struct Groups<'p> {
    names: Vec<String>,
    hints: Vec<String>,
    roles: &'p Roles,
}

impl<'p> Groups<'p> {
    fn new(page: &Page<'p>) -> Self {
        let mut names = Vec::new();
        for view in [Some(page.view), page.baseline].into_iter().flatten() {
            for share in view.by_thread_group(|thread| page.roles.group(thread.name)) {
                if !names.contains(&share.name) && names.len() < GROUPS_MAX {
                    names.push(share.name);
                }
            }
        }
        names.push("other threads".to_owned());
        let hint = |name: &String| {
            let role = page.roles.iter().find(|role| role.role == *name);
            role.map(|role| role.what.clone()).unwrap_or_default()
        };
        let hints = names.iter().map(hint).collect();
        Self { names, hints, roles: page.roles }
    }

    /// The group of each thread of a profile, by number.
    fn of_profile(&self, profile: &Profile) -> Vec<u32> {
        let group = |name: &str| {
            let group = self.roles.group(name);
            let at = self.names.iter().position(|known| *known == group);
            at.unwrap_or(self.names.len() - 1) as u32
        };
        profile.threads().map(|thread| group(thread.name)).collect()
    }
}

fn facts(page: &Page<'_>) -> String {
    let meta = &page.view.profile().meta;
    let mut parts = Vec::new();
    parts.push(ogive_text::counted(page.view.count(), "sample", "samples"));
    if let Some(seconds) = page.view.cpu_seconds() {
        parts.push(format!("{seconds:.1} CPU-s"));
    }
    if !meta.event.is_empty() {
        parts.push(match meta.rate {
            Rate::Hertz(hertz) => format!("{} at {hertz:.0} Hz", meta.event),
            _ => meta.event.clone(),
        });
    }
    if let Some(ns) = meta.duration_ns {
        parts.push(format!("over {:.1} s", ns as f64 / 1e9));
    }
    if let Some(host) = &meta.host {
        let release = meta.os_release.as_deref().unwrap_or_default();
        parts.push(format!("{host} {release}").trim().to_owned());
    }
    if meta.lost_samples > 0 {
        parts.push(ogive_text::counted(meta.lost_samples, "sample lost", "samples lost"));
    }
    parts.join(" \u{b7} ")
}

/// The name of a unit of weights.
pub(super) fn unit_name(unit: WeightUnit) -> &'static str {
    match unit {
        WeightUnit::Nanoseconds => "nanoseconds",
        WeightUnit::Cycles => "cycles",
        WeightUnit::Samples => "samples",
        WeightUnit::Events => "events",
    }
}

/// Variable-length integers of seven bits a byte, low bits first, in base64: small numbers stay
/// short.
#[derive(Default)]
struct Varints {
    bytes: Vec<u8>,
}

impl Varints {
    fn push(&mut self, mut number: u64) {
        while number >= 128 {
            self.bytes.push((number & 127) as u8 | 128);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// RFC 4648, section 4.
    fn base64(&self) -> String {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut out = String::with_capacity(self.bytes.len().div_ceil(3) * 4);
        for group in self.bytes.chunks(3) {
            let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for digit in 0..4 {
                if digit > group.len() {
                    out.push('=');
                } else {
                    let value = bits >> (18 - 6 * digit) & 63;
                    out.push(char::from(DIGITS[value as usize]));
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_follows_the_rfc() {
        let of = |text: &str| Varints { bytes: text.as_bytes().to_vec() }.base64();
        for (text, code) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(of(text), code);
        }
    }

    #[test]
    fn hostile_names_stay_text() {
        let text = "a</script><script>alert(1)</script>;b\"<!-- 5\na;c 7\n";
        let profile = crate::read::bytes("t", text.as_bytes(), &Default::default()).unwrap();
        let (view, roles) = (profile.view(), Roles::bundled());
        let page = Page { title: "<b>&", view: &view, baseline: Some(&view), roles: &roles };
        let mut out = Vec::new();
        write(&mut out, &page).unwrap();
        let html = String::from_utf8(out).unwrap();
        assert!(!html.contains("<script>alert") && !html.contains("b\"<!--"));
        assert!(html.contains("<title>&lt;b&gt;&amp;</title>"));
        assert!(!html.contains("http://") && !html.contains("https://"));
    }

    #[test]
    fn nameless_frames_are_folded_into_one_box_and_recursion_stays() {
        let frame = |name: &str| format!("\t7f00 {name} (/usr/lib/libjvm.so)\n");
        let sample = |frames: String| format!("java 7 [000] 1.0: 1 cpu-clock:\n{frames}\n");
        let text = sample(frame("[unknown]").repeat(40) + &frame("start+0x1"))
            + &sample(frame("walk+0x1").repeat(5) + &frame("start+0x1"));
        let profile = crate::read::bytes("t", text.as_bytes(), &Default::default()).unwrap();
        let (view, roles) = (profile.view(), Roles::bundled());
        let page = Page { title: "t", view: &view, baseline: None, roles: &roles };
        let mut tree = Tree::default();
        let entries = tree.add(&view, &Groups::new(&page).of_profile(&profile));
        // The root, start, one box for all nameless frames, and five of the recursion.
        assert_eq!(tree.nodes.len(), 8, "{:?}", tree.names);
        assert_eq!(entries.iter().map(|entry| entry.weight).sum::<u64>(), view.weight());
    }

    #[test]
    fn weights_in_the_page_are_those_of_the_profile() {
        let mut text = String::new();
        for n in 0..3000 {
            text.push_str(&format!("t{};root;f{};g{n} {}\n", n % 3, n % 50, n + 1));
        }
        let profile = crate::read::bytes("t", text.as_bytes(), &Default::default()).unwrap();
        let view = profile.view();
        let roles = Roles::bundled();
        let page = Page { title: "t", view: &view, baseline: None, roles: &roles };
        let groups = Groups::new(&page);
        let mut tree = Tree::default();
        let mut entries = tree.add(&view, &groups.of_profile(&profile));
        let nodes = tree.nodes.len();
        tree.prune(&mut entries, &mut Vec::new(), 0.0003);
        assert!(tree.nodes.len() < nodes);
        assert!(tree.nodes.iter().enumerate().skip(1).all(|(at, n)| (n.parent as usize) < at));
        slice(&profile, &mut entries);
        assert_eq!(entries.iter().map(|entry| entry.weight).sum::<u64>(), view.weight());
    }
}
