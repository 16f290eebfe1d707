//! Properties, parameters and the state of pools.

use super::{Facts, Known, absent};
use crate::evidence::Property;

impl Facts {
    fn properties_named(&self, name: &str) -> Known<Vec<&Property>> {
        let found: Vec<&Property> =
            self.evidence().properties.iter().filter(|property| property.name == name).collect();
        if found.is_empty() {
            absent(format!("the property {name} (zfs get {name})"))
        } else {
            Ok(self.in_use(name, found))
        }
    }

    fn matching_properties(&self, name: &str, value: &str) -> Known<Vec<&Property>> {
        let pattern = self.pattern(value)?;
        let all = self.properties_named(name)?;
        let hits: Vec<&Property> =
            all.iter().copied().filter(|property| pattern.is_match(&property.value)).collect();
        if let Some(property) = hits.first().or_else(|| all.first()) {
            self.used(&property.source);
        }
        Ok(hits)
    }

    /// Whether some dataset or pool has the property with a matching value.
    pub fn prop(&self, name: &str, value: &str) -> Known<bool> {
        Ok(!self.matching_properties(name, value)?.is_empty())
    }

    /// How many datasets or pools have the property with a matching value.
    pub fn prop_datasets(&self, name: &str, value: &str) -> Known<f64> {
        let hits = self.matching_properties(name, value)?;
        let owners: std::collections::BTreeSet<&str> =
            hits.iter().map(|property| property.owner.as_str()).collect();
        #[expect(clippy::cast_precision_loss, reason = "a number of datasets")]
        Ok(owners.len() as f64)
    }

    /// The first matching value.
    pub fn prop_value(&self, name: &str, value: &str) -> Known<String> {
        let hits = self.matching_properties(name, value)?;
        hits.first().map_or_else(
            || absent(format!("a matching {name}")),
            |property| Ok(property.value.clone()),
        )
    }

    /// The first dataset or pool with a matching value.
    pub fn prop_owner(&self, name: &str, value: &str) -> Known<String> {
        let hits = self.matching_properties(name, value)?;
        // The data set in use, not the first of the list; also for a property of the pool.
        let mut used = self.datasets_by_traffic().into_iter().map(|(dataset, _)| dataset);
        let busiest = used.find(|used| hits.iter().any(|hit| hit.owner == *used));
        busiest
            .or_else(|| hits.first().map(|hit| hit.owner.clone()))
            .map_or_else(|| absent(format!("a matching {name}")), Ok)
    }

    fn prop_numbers(&self, name: &str) -> Known<Vec<f64>> {
        let mut numbers = Vec::new();
        let mut cited: Option<(&Property, f64)> = None;
        for property in self.properties_named(name)? {
            if let Some(number) = quantity(&property.value) {
                numbers.push(number);
                if cited.is_none_or(|(_, known)| known < number) {
                    cited = Some((property, number));
                }
            }
        }
        if let Some((property, _)) = cited {
            self.used(&property.source);
        }
        if numbers.is_empty() { absent(format!("{name} as a number")) } else { Ok(numbers) }
    }

    /// The largest value of a property, sizes in bytes.
    pub fn prop_max(&self, name: &str) -> Known<f64> {
        Ok(self.prop_numbers(name)?.into_iter().fold(f64::MIN, f64::max))
    }

    /// A parameter as text.
    pub fn param_text(&self, name: &str) -> Known<String> {
        let found =
            self.evidence().parameters.iter().rev().find(|parameter| parameter.name == name);
        match found {
            Some(parameter) => {
                self.used(&parameter.source);
                Ok(parameter.value.clone())
            }
            None => absent(format!("the parameter {name}")),
        }
    }

    /// A parameter as a number.
    pub fn param(&self, name: &str) -> Known<f64> {
        let text = self.param_text(name)?;
        quantity(text.trim()).map_or_else(|| absent(format!("{name} as a number")), Ok)
    }

    /// Whether a parameter matches.
    pub fn param_is(&self, name: &str, value: &str) -> Known<bool> {
        let pattern = self.pattern(value)?;
        Ok(pattern.is_match(&self.param_text(name)?))
    }

    /// Whether `zpool status` has a matching line.
    pub fn pool_says(&self, text: &str) -> Known<bool> {
        let pattern = self.words_pattern(text)?;
        if self.evidence().pools.is_empty() {
            return absent("zpool status");
        }
        let hit = self.evidence().pools.iter().find(|line| pattern.is_match(&line.text));
        if let Some(line) = hit {
            self.used(&line.source);
        }
        Ok(hit.is_some())
    }

    /// The pool, if the lists of pools and data sets show only one.
    pub fn only_pool(&self) -> Option<&str> {
        let evidence = self.evidence();
        let owners = evidence.properties.iter().map(|property| property.owner.as_str());
        let listed = evidence.pools.iter().map(|line| line.pool.as_str());
        let mut names = owners.chain(listed).filter_map(|name| name.split(['/', '@', '#']).next());
        let first = names.find(|name| !name.is_empty())?;
        names.all(|name| name.is_empty() || name == first).then_some(first)
    }

    /// Number of imported pools.
    pub fn pools(&self) -> Known<f64> {
        let mut pools: std::collections::BTreeSet<&str> = std::collections::BTreeSet::new();
        for property in self.evidence().properties.iter().filter(|property| property.of_pool) {
            pools.insert(&property.owner);
        }
        for line in &self.evidence().pools {
            if !line.pool.is_empty() {
                pools.insert(&line.pool);
            }
        }
        if pools.is_empty() {
            let none =
                self.evidence().pools.iter().find(|line| line.text.contains("no pools available"));
            return none.map_or_else(
                || absent("the list of pools (zpool list)"),
                |line| {
                    self.used(&line.source);
                    Ok(0.0)
                },
            );
        }
        #[expect(clippy::cast_precision_loss, reason = "a number of pools")]
        Ok(pools.len() as f64)
    }

    /// Number of mounted ZFS datasets.
    pub fn mounts(&self) -> Known<f64> {
        let figures = ["mounts.zfs", "mounts.count"];
        for figure in figures {
            if let Ok(count) = self.gauge(figure) {
                return Ok(count);
            }
        }
        if let Ok(count) = self.gauge_of("mounts", "^zfs$", "count") {
            return Ok(count);
        }
        self.prop_datasets("mounted", "^yes$")
    }
}

/// A number as ZFS prints it: `128K`, `1.20x`, `45%`, `3.5T`, `17`; sizes in powers of 1024.
pub(super) fn quantity(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches(['%', 'x', 'B', 'i']);
    let (number, scale) = match text.chars().last()? {
        'K' | 'k' => (&text[..text.len() - 1], 10),
        'M' => (&text[..text.len() - 1], 20),
        'G' => (&text[..text.len() - 1], 30),
        'T' => (&text[..text.len() - 1], 40),
        'P' => (&text[..text.len() - 1], 50),
        _ => (text, 0),
    };
    let value: f64 = number.trim().replace(',', ".").parse().ok()?;
    let value = value * f64::powi(2.0, scale);
    value.is_finite().then_some(value)
}

impl Facts {}

#[cfg(test)]
mod tests {
    use super::quantity;

    #[test]
    fn figures_of_zfs_are_numbers() {
        assert_eq!(quantity("128K"), Some(131_072.0));
        assert_eq!(quantity("1.20x"), Some(1.2));
        assert_eq!(quantity("45%"), Some(45.0));
        assert_eq!(quantity("-"), None);
        assert_eq!(quantity(""), None);
        assert_eq!(quantity("512"), Some(512.0));
        assert_eq!(quantity("16MiB"), Some(16_777_216.0));
    }
}
