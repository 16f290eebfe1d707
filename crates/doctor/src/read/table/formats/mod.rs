//! The formats of tables, as data. Formats of the same name belong to one tool and are tried in
//! order.

pub(crate) mod caches;
pub(crate) mod disks;
pub(crate) mod intervals;
pub(crate) mod lists;
pub(crate) mod systems;
