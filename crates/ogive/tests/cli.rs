//! The output for help, wrong arguments and impossible requests: each file in `tests/cli` is a
//! session.
//!
//! After an intended change, `TRYCMD=overwrite cargo test -p ogive --test cli` updates the
//! sessions.

#[test]
fn sessions_print_the_recorded_output() {
    trycmd::TestCases::new()
        .register_bin("ogive", std::path::Path::new(env!("CARGO_BIN_EXE_ogive")))
        .env("COLUMNS", "100")
        .env("LC_ALL", "C")
        .case("tests/cli/*.trycmd");
}
