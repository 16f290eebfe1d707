//! Faults of an expression that need no evidence: names, number and kinds of arguments, patterns,
//! versions.

use cel::common::ast::{Expr, IdedExpr, LiteralValue};

use super::{Expression, FUNCTIONS};
use crate::atlas;
use crate::facts::{parse_versions, parts, pattern_of};

/// Operators and standard functions that rules may use in addition to [`FUNCTIONS`].
const STANDARD: [&str; 17] = [
    "_&&_", "_||_", "!_", "_>_", "_<_", "_>=_", "_<=_", "_==_", "_!=_", "_+_", "_-_", "_*_", "_/_",
    "-_", "_?_:_", "double", "matches",
];
const KINDS: [&str; 19] = [
    "profile",
    "callers",
    "threads",
    "cpu",
    "arcstats",
    "memory",
    "dbufstats",
    "txgs",
    "sar",
    "iotop",
    "rates",
    "properties",
    "params",
    "versions",
    "log",
    "words",
    "pool",
    "stacks",
    "locks",
];

/// Functions whose argument is `table.figure`.
const FIGURES: [&str; 6] = ["gauge", "rate", "delta", "word", "ratio", "counter_share"];
/// Functions whose argument is a version or a list of versions.
const VERSIONS: [&str; 4] = ["zfs_before", "zfs_at_least", "kernel_at_least", "kernel_before"];

/// The faults of an expression; empty if there are none.
pub fn faults(expression: &Expression) -> Vec<String> {
    let mut found = Vec::new();
    walk(expression.program().expression(), &mut found);
    found
}

/// Whether it matches words in lines that no format claims.
pub fn asks_for_words(expression: &Expression) -> bool {
    calls(expression, &["said", "tells"])
}

/// Whether an expression calls one of these operators or functions.
pub(super) fn calls(expression: &Expression, names: &[&str]) -> bool {
    fn within(expression: &IdedExpr, names: &[&str]) -> bool {
        let Expr::Call(call) = &expression.expr else { return false };
        let target = call.target.as_deref();
        names.contains(&call.func_name.as_str())
            || call.args.iter().chain(target).any(|part| within(part, names))
    }
    within(expression.program().expression(), names)
}

fn walk(expression: &IdedExpr, found: &mut Vec<String>) {
    match &expression.expr {
        Expr::Call(call) => {
            check_call(&call.func_name, &call.args, found);
            if let Some(target) = &call.target {
                walk(target, found);
            }
            call.args.iter().for_each(|argument| walk(argument, found));
        }
        Expr::Ident(name) => {
            found.push(format!("there is no variable {name}; facts are functions"))
        }
        Expr::Literal(_) => {}
        _ => found.push("only calls, operators and literals are allowed".to_owned()),
    }
}

fn check_call(name: &str, arguments: &[IdedExpr], found: &mut Vec<String>) {
    if STANDARD.contains(&name) {
        let arithmetic = matches!(name, "_+_" | "_-_" | "_*_" | "_/_");
        let whole =
            |argument: &IdedExpr| matches!(&argument.expr, Expr::Literal(LiteralValue::Int(_)));
        if arithmetic && arguments.iter().any(whole) {
            found.push(format!("{name}: write numbers in arithmetic with a point (2.0)"));
        }
        return;
    }
    let Some(function) = FUNCTIONS.iter().find(|function| function.name == name) else {
        found.push(format!("there is no function {name}()"));
        return;
    };
    if function.arguments.len() != arguments.len() {
        found.push(format!(
            "{name}() takes {} arguments, not {}",
            function.arguments.len(),
            arguments.len()
        ));
        return;
    }
    for (kind, argument) in function.arguments.chars().zip(arguments) {
        if let ('f' | 't', Expr::Call(call)) = (kind, &argument.expr) {
            let function = if kind == 'f' { "subsystem" } else { "role" };
            if call.func_name != function {
                found.push(format!(
                    "{name}(): takes a pattern or {function}(), not {}()",
                    call.func_name
                ));
            }
            check_call(&call.func_name, &call.args, found);
            continue;
        }
        let Expr::Literal(LiteralValue::String(text)) = &argument.expr else {
            if kind != 'n' {
                found.push(format!("{name}(): its arguments must be literal texts"));
            }
            continue;
        };
        check_text(name, kind, text.inner(), found);
    }
}

fn check_text(name: &str, kind: char, text: &str, found: &mut Vec<String>) {
    match kind {
        'n' => found.push(format!("{name}(): expected a number, not {text:?}")),
        'r' | 'f' | 't' => check_pattern(name, text, found),
        _ if name == "tells" => parts(text).for_each(|(_, part)| check_pattern(name, part, found)),
        _ if name == "subsystem" || name == "role" => {
            let is_known = if name == "role" { atlas::is_role } else { atlas::is_subsystem };
            for part in text.split(',').map(str::trim).filter(|part| !is_known(part)) {
                found.push(format!("{name}(): there is no {name} {part:?}"));
            }
        }
        _ if name == "shown" && !KINDS.contains(&text) && text != "timings" => {
            found.push(format!("shown(): there is no kind of evidence {text:?}"));
        }
        _ if FIGURES.contains(&name) && !text.contains('.') => {
            found.push(format!("{name}(): {text:?} is not table.figure"));
        }
        _ if VERSIONS.contains(&name)
            && !(name == "zfs_before" && atlas::first_releases(text).is_some())
            && text.split(',').any(|part| parse_versions(part).is_none()) =>
        {
            found.push(format!("{name}(): {text:?} is not a version"));
        }
        _ => {}
    }
}

fn check_pattern(name: &str, text: &str, found: &mut Vec<String>) {
    if let Err(error) = regex::Regex::new(&pattern_of(text)) {
        found.push(format!("{name}(): {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        faults(&Expression::compile(text).unwrap()).join("; ")
    }

    #[test]
    fn faults_of_expressions_are_found_without_evidence() {
        assert_eq!(fault(r#"thread_cpu("a") > 5 && shown("profile")"#), "");
        assert!(fault(r#"thread_cp("a") > 5"#).contains("no function"));
        assert!(fault(r#"thread_cpu("a", "b") > 5"#).contains("takes 1"));
        assert!(fault(r#"thread_cpu("(") > 5"#).contains("regex"));
        assert!(fault(r#"tells("scrub & (")"#).contains("regex"));
        assert_eq!(fault(r#"tells("scrub & <slow> & !memory")"#), "");
        assert!(fault(r#"gauge("arcstats") > 5"#).contains("table.figure"));
        assert!(fault(r#"gauge("a.b") * 2 > 5"#).contains("point"));
        assert!(fault(r#"zfs_before("new")"#).contains("version"));
        assert!(fault(r#"zfs_before("0000000000")"#).contains("version"));
        assert!(fault(r#"zfs_before("178c93f021")"#).is_empty());
        assert!(fault("arcstats > 5").contains("variable"));
        assert_eq!(fault(r#"in_thread(role("read"), subsystem("ddt, cipher/ccm")) > 5"#), "");
        assert!(fault(r#"self_share(subsystem("dt")) > 5"#).contains("no subsystem \"dt\""));
        assert!(fault(r#"thread_cpu(subsystem("ddt")) > 5"#).contains("role"));
    }
}
