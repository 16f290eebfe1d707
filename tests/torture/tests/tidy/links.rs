//! Links between pages: a relative link names a file or a folder of the tree, and its anchor names a
//! heading of that page.
//!
//! Headings get their anchors by GitHub's rule. Code is no link. Links with a scheme are not
//! followed, so nothing here needs a network.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// A page's lines outside fenced code.
fn lines(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The targets of a page's links, `[text](target)` and `[name]: target`.
fn targets(page: &str) -> Vec<String> {
    let lines: Vec<&str> = lines(page).collect();
    let mut found = Vec::new();
    for paragraph in lines.split(|line| line.trim().is_empty()) {
        let text = paragraph.join("\n");
        let text: String = text.split('`').step_by(2).collect();
        let inline = text.split("](").skip(1);
        let named = text.lines().filter_map(|line| line.trim_start().strip_prefix('['));
        let named = named.filter_map(|line| Some(line.split_once("]: ")?.1));
        for rest in inline.chain(named) {
            let end = rest.find(|end: char| end == ')' || end.is_whitespace());
            found.push(rest[..end.unwrap_or(rest.len())].to_owned());
        }
    }
    found
}

/// The anchors of a page's headings. A heading that was there before gets a number.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut times = BTreeMap::<String, usize>::new();
    let mut found = BTreeSet::new();
    for line in lines(page) {
        let heading = line.trim_start_matches('#');
        let Some(heading) = heading.strip_prefix(' ').filter(|_| line.starts_with('#')) else {
            continue;
        };
        let anchor = anchor(heading);
        let before = times.entry(anchor.clone()).or_default();
        found.insert(if *before == 0 { anchor } else { format!("{anchor}-{before}") });
        *before += 1;
    }
    found
}

/// GitHub's rule: lower case, hyphens for spaces, and of the marks only `-` and `_`.
fn anchor(heading: &str) -> String {
    let mut text = heading.trim().to_lowercase();
    while let Some(start) = text.find("](") {
        let end = text[start..].find(')').map_or(text.len(), |end| start + end + 1);
        text.replace_range(start..end, "");
    }
    text.retain(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(&letter));
    text.replace(' ', "-")
}

/// The file that a path names from the folder of a page, without `.` and `..`.
fn resolve(page: &Path, path: &str) -> PathBuf {
    let folder = page.parent().filter(|_| !path.starts_with('/'));
    let mut found = PathBuf::new();
    for part in folder.unwrap_or(Path::new("")).join(path.trim_start_matches('/')).components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            Component::Normal(name) => found.push(name),
            _ => {}
        }
    }
    found
}

/// The links of all pages that lead nowhere.
pub(crate) fn faults(pages: &BTreeMap<PathBuf, String>, files: &[PathBuf]) -> Vec<String> {
    let places: BTreeSet<&Path> = files.iter().flat_map(|file| file.ancestors()).collect();
    let anchors: BTreeMap<_, _> = pages.iter().map(|(page, text)| (page, anchors(text))).collect();
    let mut faults = Vec::new();
    for (page, text) in pages {
        for target in targets(text) {
            if target.contains(':') {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = if path.is_empty() { page.clone() } else { resolve(page, path) };
            if !places.contains(file.as_path()) {
                faults.push(format!("{}: {target}: there is no such file", page.display()));
            } else if !anchor.is_empty()
                && anchors.get(&file).is_some_and(|known| !known.contains(anchor))
            {
                faults.push(format!("{}: {target}: there is no such heading", page.display()));
            }
        }
    }
    faults
}

#[cfg(test)]
mod rules {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        let other = "# What `ogive mount` does, [in](b.md) _short_\n## Twice\n## Twice\n";
        let pages = [("docs/a.md", text), ("b.md", other)];
        let pages = pages.map(|(page, text)| (PathBuf::from(page), text.to_owned())).into();
        faults(&pages, &["docs/a.md", "b.md", "crates/x/y.rs"].map(PathBuf::from))
    }

    #[test]
    fn links_to_files_folders_and_headings_resolve() {
        let text = "[a](../b.md) [b](#here), [c\nd](../b.md#what-ogive-mount-does-in-_short_) [e]\n\n\
            ## Here\n![f](../crates/x/) [g](/b.md#twice-1) [h](https://x.org/y.md#z)\n\n[e]: ../b.md\n";
        assert_eq!(of(text), Vec::<String>::new());
    }

    #[test]
    fn a_link_that_leads_nowhere_is_a_fault() {
        for wrong in ["[a](b.md)", "[a](../b.md#thrice)", "[a](#here)", "[a]: ../c.md", "[`a`](c)"]
        {
            assert_eq!(of(wrong).len(), 1, "{wrong}");
        }
    }

    #[test]
    fn code_has_no_links() {
        assert_eq!(of("`[a](b.md)`\n```md\n[a](b.md)\n# Here\n```\n"), Vec::<String>::new());
        assert_eq!(of("```sh\n# Here\n```\n[a](#here)").len(), 1);
    }
}
