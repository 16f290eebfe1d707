//! The reference of functions in `docs/rules.md` equals the program's. `RULES_PAGE=overwrite`
//! rewrites it.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;

use ogive_doctor::expression::{FUNCTIONS, Function};

const BEGIN: &str = "<!-- functions: written by `RULES_PAGE=overwrite cargo test -p ogive-doctor \
                     --test rules_page` -->\n";
const END: &str = "<!-- end of functions -->";

/// The name of an argument, by its letter.
fn argument(letter: char) -> &'static str {
    match letter {
        'r' => "pattern",
        'f' => "function",
        't' => "thread",
        's' => "name",
        'n' => "number",
        _ => panic!("no kind of argument is called {letter}"),
    }
}

/// The type of a result, by its letter.
fn result(letter: char) -> &'static str {
    match letter {
        'n' => "number",
        'b' => "truth",
        's' => "text",
        _ => panic!("no kind of result is called {letter}"),
    }
}

fn row(function: &Function) -> String {
    let Function { name, arguments, result: letter, meaning } = function;
    let arguments: Vec<&str> = arguments.chars().map(argument).collect();
    let meaning = meaning.replace('|', "\\|");
    format!("| `{name}({})` | {} | {meaning} |\n", arguments.join(", "), result(*letter))
}

#[test]
fn the_page_has_every_function_with_its_meaning() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for functions");
    let (written, after) = rest.split_once(END).expect("the place for functions ends");
    let rows: String = FUNCTIONS.iter().map(row).collect();
    let reference = format!("\n| function | returns | meaning |\n|---|---|---|\n{rows}\n");
    if std::env::var_os("RULES_PAGE").is_some_and(|mode| mode == "overwrite") {
        std::fs::write(&path, [before, BEGIN, &reference, END, after].concat()).unwrap();
    } else {
        assert_eq!(written, reference, "set RULES_PAGE=overwrite to write docs/rules.md again");
    }
}
