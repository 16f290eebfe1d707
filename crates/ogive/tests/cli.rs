//! What is printed for help, wrong arguments and impossible requests: each file in `tests/cli` is a
//! session.
//!
//! After an intended change, `TRYCMD=overwrite cargo test -p ogive --test cli` writes the sessions
//! anew.

#[test]
fn sessions_print_what_they_printed() {
    trycmd::TestCases::new()
        .register_bin("ogive", std::path::Path::new(env!("CARGO_BIN_EXE_ogive")))
        .env("COLUMNS", "100")
        .env("LC_ALL", "C")
        .case("tests/cli/*.trycmd");
}
