//! Every statistic of a mount, declared once.
//!
//! A statistic is a row of the table (`table.rs`): its name, kind, unit and meaning, its Prometheus
//! family and its series in the live view. The files below `MNT/.ogive`, the metrics, the charts
//! and the fields of the counting structs are derived from it. A new statistic needs one row, and
//! the place that counts it.
//!
//! This crate has no state, no lock and no dependency. It neither counts nor writes anything.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod families;
mod field;
mod table;

pub use families::FAMILIES;
pub use field::{Field, Kind, Label, Unit};

/// The rules of the engine by number, as labels show them.
pub const RULES: [&str; 4] = ["lirs", "lru", "2q", "arc"];

/// Makes an array of the rows of each file.
macro_rules! files {
    ($($file:ident { $(
        $kind:ident $(engine $engine:ident)? $(second_level $second_level:ident)?
        $(mount $mount:ident)? $(other $other:ident)? $doc:literal
        $(in $family:literal $({ $($label:ident $value:literal),+ })?)? $(chart $series:literal)?;
    )* })*) => { $(
        /// The rows of the file with this name, in its order.
        pub static $file: &[Field] = &[$(
            Field::$kind(
                stringify!($($engine)? $($second_level)? $($mount)? $($other)?),
                $doc,
            )
            $(.in_family($family, &[$($((stringify!($label), $value)),+)?]))?
            $(.charted($series))?,
        )*];
    )* };
}

statistics!(files, ());

/// Calls a macro with name and meaning of each row that an owner counts, in the table's order:
/// `owned!(engine fields)` calls `fields! { hits "Accesses …"; … }`.
///
/// The owners are `engine`, `second_level` and `mount`.
#[macro_export]
macro_rules! owned {
    ($owner:ident $then:ident) => {
        $crate::statistics! { $crate::owned_rows, ($owner $then) }
    };
}

/// Selects the rows of an owner.
#[doc(hidden)]
#[macro_export]
macro_rules! owned_rows {
    ($owner:ident $then:ident $($file:ident { $(
        $kind:ident $(engine $engine:ident)? $(second_level $second_level:ident)?
        $(mount $mount:ident)? $(other $other:ident)? $doc:literal
        $(in $family:literal $({ $($label:ident $value:literal),+ })?)? $(chart $series:literal)?;
    )* })*) => {
        $crate::owned_by! { $owner $then
            { $($($($engine $doc;)?)*)* }
            { $($($($second_level $doc;)?)*)* }
            { $($($($mount $doc;)?)*)* }
        }
    };
}

/// Selects the list of an owner.
#[doc(hidden)]
#[macro_export]
macro_rules! owned_by {
    (engine $then:ident { $($rows:tt)* } $second_level:tt $mount:tt) => { $then! { $($rows)* } };
    (second_level $then:ident $engine:tt { $($rows:tt)* } $mount:tt) => { $then! { $($rows)* } };
    (mount $then:ident $engine:tt $second_level:tt { $($rows:tt)* }) => { $then! { $($rows)* } };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const FILES: [&[Field]; 3] = [ARCSTATS, ZFETCHSTATS, OGIVESTATS];

    #[test]
    fn each_file_has_a_name_once_and_each_row_a_meaning() {
        for file in FILES {
            let names: HashSet<_> = file.iter().map(|field| field.name).collect();
            assert_eq!(names.len(), file.len());
            for field in file {
                assert!(field.doc.len() > 5 && !field.doc.ends_with('.'), "{}", field.name);
            }
        }
        assert!(OGIVESTATS.iter().all(|own| ARCSTATS.iter().all(|field| field.name != own.name)));
    }

    #[test]
    fn rows_and_families_belong_together() {
        let names: HashSet<_> = FAMILIES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), FAMILIES.len());
        let rows = || FILES.into_iter().flatten();
        for field in rows() {
            assert!(field.family.is_none_or(|family| names.contains(family)), "{}", field.name);
        }
        for (family, _) in FAMILIES {
            let kinds: HashSet<_> =
                rows().filter(|row| row.family == Some(*family)).map(|row| row.kind).collect();
            assert_eq!(kinds.len(), 1, "{family} has no row, or counters and levels");
        }
    }

    #[test]
    fn a_series_is_a_sum_of_counters_or_one_level() {
        let rows = || FILES.into_iter().flatten();
        for field in rows().filter(|field| field.kind == Kind::Gauge && field.series.is_some()) {
            let same = rows().filter(|row| row.series == field.series).count();
            assert_eq!(same, 1, "{}", field.name);
        }
    }
}
