//! The formats of tables, as data. Formats of one name are one tool's, tried in order.

pub(crate) mod caches;
pub(crate) mod disks;
pub(crate) mod intervals;
pub(crate) mod lists;
pub(crate) mod systems;
