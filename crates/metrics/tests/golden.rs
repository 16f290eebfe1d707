//! Compares all metrics of a mount and of an OpenZFS host with files, byte for byte.
//!
//! `OGIVE_BLESS=1` writes the files again.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use ogive_kstat::{Kstat, Table, arcstats::ARCSTATS, files, named};
use ogive_metrics::families::{self, openzfs};
use ogive_metrics::{Exposition, Figures, Format};

/// Each row has a different number.
fn numbered(table: &'static Table) -> Kstat {
    let mut rows = table.rows(1000, 2000);
    for (number, field) in (1_i128..).zip(table.fields) {
        rows.set(field.name, number).unwrap();
    }
    rows.to_kstat()
}

fn check(name: &str, exposition: Exposition) {
    let told = String::from_utf8(exposition.finish()).unwrap();
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("OGIVE_BLESS").is_some() {
        std::fs::write(&path, &told).unwrap();
    }
    assert!(told == std::fs::read_to_string(&path).unwrap(), "{name} differs:\n{told}");
}

#[test]
fn a_mount_writes_the_same_bytes() {
    for (name, format) in [("mount.prom", Format::Text), ("mount.openmetrics", Format::OpenMetrics)]
    {
        let ogivestats = include_bytes!("data/ogivestats");
        let figures = Figures {
            mount: "/mnt/a".to_owned(),
            arcstats: numbered(&ARCSTATS),
            zfetchstats: numbered(&files::ZFETCHSTATS),
            ogivestats: named::parse("ogive", "ogivestats", ogivestats).unwrap(),
        };
        let mut exposition = Exposition::new(format);
        families::tell(&mut exposition, &[figures]);
        check(name, exposition);
    }
}

#[test]
fn an_openzfs_host_writes_the_same_bytes() {
    let pool = openzfs::Pool {
        name: "tank".to_owned(),
        state: "ONLINE".to_owned(),
        datasets: vec![
            named::parse("zfs", "o", files::dataset("tank/a", &objset()).as_bytes()).unwrap(),
        ],
    };
    let zfs = openzfs::OpenZfs {
        arcstats: numbered(&ARCSTATS),
        zfetchstats: Some(numbered(&files::ZFETCHSTATS)),
        zil: Some(numbered(&files::ZIL)),
        dbufstats: None,
        pools: vec![pool],
    };
    let mut exposition = Exposition::new(Format::Text);
    openzfs::tell(&mut exposition, &zfs);
    check("openzfs.prom", exposition);
}

fn objset() -> ogive_kstat::Rows {
    let mut rows = files::OBJSET.rows(1000, 2000);
    rows.fill([("writes", 5_u64), ("nwritten", 6), ("reads", 7), ("nread", 8)]).unwrap();
    rows
}
