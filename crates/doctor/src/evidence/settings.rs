//! Configuration: properties of datasets and pools, module parameters, sysctls.

use super::Source;

/// A property of a dataset or pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// Dataset (`tank/home`) or pool (`tank`).
    pub owner: String,
    /// `true` for properties of pools (`zpool get`, columns of `zpool list`).
    pub of_pool: bool,
    /// Name, lower case, as `zfs get`/`zpool get` spell it (the columns FRAG, CAP, DEDUP of
    /// `zpool list` are `fragmentation`, `capacity`, `dedupratio`).
    pub name: String,
    /// Value as printed.
    pub value: String,
    /// `local`, `default`, `inherited from ...`, `-`; `None` if not shown.
    pub origin: Option<String>,
    /// Where it was read.
    pub source: Source,
}

/// A module parameter, sysctl or boot parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name without module or path: `zfs_arc_max`, `icp_aes_impl`; sysctls whole:
    /// `vfs.zfs.arc.max`.
    pub name: String,
    /// Value as printed; `cycle [fastest] generic` stays as it is.
    pub value: String,
    /// Where it was read.
    pub source: Source,
}

/// State of a pool in words: scan, status, errors, device lines of `zpool status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolLine {
    /// Pool.
    pub pool: String,
    /// `scan`, `state`, `status`, `action`, `errors`, `config`, `dedup`.
    pub field: String,
    /// Text with lines joined by a space; for `config`, one entry per device line.
    pub text: String,
    /// Where it was read.
    pub source: Source,
}
