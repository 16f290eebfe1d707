//! Traits that some hosts have in common and the others lack.

use std::collections::BTreeMap;

use super::host::{Host, Trait};

/// The fewest hosts on either side for a lift; below it there are only counts.
pub const MIN_FOR_LIFT: usize = 5;
/// A trait is worth naming if its part among the one side exceeds that of the other by this much.
const WORTH: f64 = 0.3;
/// The most rows.
const ROWS: usize = 8;

/// A trait that some hosts have more often than the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Common {
    /// The trait.
    pub is: Trait,
    /// The number of other traits of exactly the same hosts, which cannot be separated here.
    pub alike: usize,
    /// The number of these hosts that have it, and the number for which it is known.
    pub ill: (usize, usize),
    /// The same for the other hosts.
    pub others: (usize, usize),
    /// Its frequency among these hosts divided by that among all; `None` for too few hosts.
    pub lift: Option<f64>,
}

/// The traits that `members` share and the others lack, most significant first.
pub(super) fn in_common(hosts: &[Host], members: &[usize]) -> Vec<Common> {
    let mut inside = vec![false; hosts.len()];
    for at in members {
        inside[*at] = true;
    }
    let mut having: BTreeMap<&Trait, Vec<usize>> = BTreeMap::new();
    // Only hosts that show this name count.
    let mut knowing: BTreeMap<(&str, u8), [usize; 2]> = BTreeMap::new();
    for (at, host) in hosts.iter().enumerate() {
        let mut last = None;
        for own in &host.traits {
            having.entry(own).or_default().push(at);
            let name = (own.name.as_str(), own.kind as u8);
            if last != Some(name) {
                knowing.entry(name).or_default()[usize::from(!inside[at])] += 1;
            }
            last = Some(name);
        }
    }
    // Traits of the same hosts are one row; the first by kind and name represents them.
    let mut rows: BTreeMap<Vec<usize>, Common> = BTreeMap::new();
    for (is, who) in having {
        let ill = who.iter().filter(|at| inside[**at]).count();
        let Some([ill_known, others_known]) = knowing.get(&(is.name.as_str(), is.kind as u8))
        else {
            continue;
        };
        let row = Common {
            is: is.clone(),
            alike: 0,
            ill: (ill, *ill_known),
            others: (who.len() - ill, *others_known),
            lift: None,
        };
        if !is_telling(&row) {
            continue;
        }
        match rows.get_mut(&who) {
            Some(known) => known.alike += 1,
            None => {
                rows.insert(who, Common { lift: lift(&row), ..row });
            }
        }
    }
    let mut rows: Vec<Common> = rows.into_values().collect();
    rows.sort_by(|a, b| gap(b).total_cmp(&gap(a)).then_with(|| a.is.cmp(&b.is)));
    rows.truncate(ROWS);
    rows
}

#[expect(clippy::cast_precision_loss, reason = "a number of hosts")]
fn part((having, known): (usize, usize)) -> f64 {
    if known == 0 { 0.0 } else { having as f64 / known as f64 }
}

fn gap(row: &Common) -> f64 {
    part(row.ill) - part(row.others)
}

/// A few hosts differ in everything: there a trait must belong to all of one side and to none of
/// the other.
fn is_telling(row: &Common) -> bool {
    let (ill, others) = (row.ill.1, row.others.1);
    if ill == 0 || others == 0 {
        return false;
    }
    if ill < MIN_FOR_LIFT || others < MIN_FOR_LIFT {
        return row.ill.0 == ill && row.others.0 == 0;
    }
    gap(row) >= WORTH && part(row.ill) >= 0.5
}

fn lift(row: &Common) -> Option<f64> {
    if row.ill.1 < MIN_FOR_LIFT || row.others.1 < MIN_FOR_LIFT {
        return None;
    }
    let all = part((row.ill.0 + row.others.0, row.ill.1 + row.others.1));
    (all > 0.0).then(|| part(row.ill) / all)
}
