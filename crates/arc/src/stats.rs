//! The statistics of a cache at one moment.
//!
//! Names and meanings are rows of the table in `ogive-stats`. Those in `arcstats` have OpenZFS's
//! meaning, as far as this engine has it. A new statistic is a row there, and what counts it here:
//! an event of [`crate::counters`], or a line in `cache/snapshot.rs`.

macro_rules! stats {
    ($($name:ident $doc:literal;)+) => {
        /// Statistics of a cache at one moment. Counts since the cache was made; sizes in
        /// bytes, weights unless said otherwise; times in nanoseconds.
        ///
        /// Counters are read one after the other while others count, so sums may differ by
        /// what happened meanwhile.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $(#[doc = $doc] pub $name: u64,)+
        }

        impl Stats {
            /// Name and value of every statistic, in the order of the table.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($name), self.$name),)+].into_iter()
            }
        }
    };
}

ogive_stats::owned!(engine stats);
