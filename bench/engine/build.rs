//! Compiles the way to RocksDB's HyperClockCache, if and only if the feature `hyperclock` is on.
//!
//! `ROCKSDB_INCLUDE_DIR` and `ROCKSDB_LIB_DIR` name another RocksDB than the system's, as for the
//! crate `librocksdb-sys`.

fn main() {
    #[cfg(feature = "hyperclock")]
    hyperclock();
}

#[cfg(feature = "hyperclock")]
fn hyperclock() {
    const SOURCE: &str = "src/hyperclock.cc";
    println!("cargo::rerun-if-changed={SOURCE}");
    let set = |name: &str| {
        println!("cargo::rerun-if-env-changed={name}");
        std::env::var(name).ok()
    };
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").file(SOURCE);
    if let Some(folder) = set("ROCKSDB_INCLUDE_DIR") {
        build.include(folder);
    }
    build.compile("hyperclock");
    if let Some(folder) = set("ROCKSDB_LIB_DIR") {
        println!("cargo::rustc-link-search=native={folder}");
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    }
    println!("cargo::rustc-link-lib=rocksdb");
}
