//! Tests: every rule on every system, with names that an attacker chose. In each printed command
//! such a name is one word, or the command is not printed.

use super::open_slots::{advice, commands, convincing, none_of, on_all, printed};
use super::{next_step, weigh};
use crate::answers::Answers;
use crate::evidence::{
    Evidence, Figure, Number, Parameter, PoolLine, Property, Source, Statement, Table,
};
use crate::expression::Environment;
use crate::facts::Facts;
use crate::rule::{Rule, RuleSet};

/// The end of each name, so that any piece of it is found.
const MARK: &str = "qzq";

const NAMES: [&str; 12] = [
    "qzq$(touch${IFS}x)qzq",
    "qzq`id`qzq",
    "qzq;reboot;qzq",
    "qzq&&reboot||qzq",
    "qzq\nreboot\nqzq",
    "qzq'\"qzq",
    "-fqzqqzq",
    "qzq my documents qzq",
    "qzq\u{1b}[31mqzq",
    "qzq\u{fffd}\u{202e}qzq",
    "qzq>passwd<qzq*?[a]{b,c}~qzq",
    "qzq POOL DATASET DEVICE PROCESS OLD MD qzq",
];

/// The words of a command as a shell splits them; nothing is executed. Syntax of the shell, such as
/// `$`, `(` and `;`, is a word by itself.
fn words(command: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = command.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                let word = word.get_or_insert_default();
                word.extend(letters.by_ref().take_while(|letter| *letter != '\''));
            }
            '"' => {
                let word = word.get_or_insert_default();
                word.extend(letters.by_ref().take_while(|letter| *letter != '"'));
            }
            '\\' => word.get_or_insert_default().extend(letters.next()),
            ' ' | '\t' => words.extend(word.take()),
            own if "\n$`;&|<>(){}*?[]~#".contains(own) => {
                words.extend(word.take());
                words.push(own.to_string());
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

/// Whether each piece of the name in a command is in a word with the whole name.
fn is_safe(command: &str, name: &str) -> bool {
    let pieces = |text: &str| text.matches(MARK).count();
    let words = words(command);
    let whole: usize = words.iter().map(|word| word.matches(name).count() * pieces(name)).sum();
    whole == pieces(command) && !words.iter().any(|word| word.starts_with("-fqzq"))
}

/// The evidence, with this name wherever evidence has a name.
fn with_name(evidence: &mut Evidence, name: &str, parameters: &[String]) {
    let source = || Source { input: "host".into(), line: None };
    let data_set = format!("{name}/{name}");
    let property = |property: &str, of_pool, value: &str| Property {
        owner: if of_pool { name.to_owned() } else { data_set.clone() },
        of_pool,
        name: property.to_owned(),
        value: value.to_owned(),
        origin: Some("local".to_owned()),
        source: source(),
    };
    for known in &mut evidence.properties {
        known.owner = if known.of_pool { name.to_owned() } else { data_set.clone() };
    }
    for key in ["compression", "checksum", "atime", "xattr", "sync", "dedup", "primarycache"] {
        evidence.properties.retain(|known| known.name != key);
        evidence.properties.push(property(key, false, name));
    }
    for key in ["autotrim", "autoexpand"] {
        evidence.properties.push(property(key, true, name));
    }
    let row = |text: String| PoolLine {
        pool: name.to_owned(),
        field: "config".to_owned(),
        text,
        source: source(),
    };
    for line in &mut evidence.pools {
        line.pool = name.to_owned();
    }
    // In the tables of pools a name ends at a blank.
    let disk = format!("ata-{name}");
    if !name.contains(char::is_whitespace) {
        evidence.pools.push(row(format!("{disk} FAULTED 3 4 5")));
        evidence.pools.push(row("cache".to_owned()));
        evidence.pools.push(row(name.to_owned()));
    }
    let wait = Figure { name: "await".into(), value: Number::Gauge(900.0), source: source() };
    let table = |table: &str, scope: &str| Table {
        name: table.to_owned(),
        scope: Some(scope.to_owned()),
        taken_ns: None,
        age_s: None,
        figures: vec![wait.clone()],
    };
    evidence.tables.push(table("iostat", &disk));
    evidence.tables.push(table("zpool_iostat", name));
    for (taken_ns, bytes) in [(1, 0.0), (9, 1e9)] {
        let figure = |name: &str, value| Figure { name: name.into(), value, source: source() };
        evidence.tables.push(Table {
            taken_ns: Some(taken_ns),
            figures: vec![
                figure("dataset_name", Number::Text(data_set.clone())),
                figure("nread", Number::Counter(bytes)),
            ],
            ..table("objset-0x1", name)
        });
    }
    for thread in &mut evidence.threads {
        if thread.kernel != Some(true) {
            thread.name = name.to_owned();
        }
        thread.command = Some(name.to_owned());
    }
    let set = |parameter: &str| Parameter {
        name: parameter.to_owned(),
        value: name.to_owned(),
        source: source(),
    };
    for parameter in parameters {
        if evidence.parameters.iter().all(|known| known.name != *parameter) {
            evidence.parameters.push(set(parameter));
        }
    }
    evidence.host.ogive_mount = Some(Statement { value: format!("/{name}"), source: source() });
    for frame in evidence.kernel_stacks.iter_mut().flat_map(|stack| &mut stack.frames) {
        frame.module = frame.module.as_ref().map(|_| name.to_owned());
    }
}

/// The parameters that a rule advises to set.
fn parameters_of(rule: &Rule) -> Vec<String> {
    let lines = rule.remedy.now.iter().chain(&rule.remedy.lasting);
    lines.filter_map(|line| line.text.parameter.clone()).collect()
}

#[test]
fn a_name_in_a_command_is_always_one_word() {
    let rules = RuleSet::bundled().expect("the rules compile");
    let systems = ["", "linux", "freebsd", "illumos", "macos", "windows"];
    let all: Vec<(&Rule, &str)> =
        rules.iter().flat_map(|rule| systems.iter().map(move |system| (rule, *system))).collect();
    let with_names = std::sync::atomic::AtomicUsize::new(0);
    none_of(on_all(&all, |(rule, system)| {
        let (mut faults, parameters) = (Vec::new(), parameters_of(rule));
        for name in NAMES {
            let Some(mut evidence) = convincing(rule, system) else { continue };
            with_name(&mut evidence, name, &parameters);
            let environment = Environment::new(Facts::with_patterns(evidence, rules.patterns()));
            let Some(found) = printed(rule, &rules, &environment) else { continue };
            let answers = Answers::of(environment.facts());
            let weighed = weigh::weigh(rule, &environment).ok().flatten();
            let near: Vec<_> = weighed.into_iter().map(|one| (*rule, one)).collect();
            let near = next_step(&near, &answers, &environment).map(|step| step.run);
            let far = next_step(&[], &answers, &environment).map(|step| step.run);
            let in_text = advice(&found).into_iter().flat_map(|text| text.split('`').skip(1));
            let in_text = in_text.step_by(2).map(ToOwned::to_owned);
            let asked = commands(&found).into_iter().cloned().chain(near).chain(far);
            for command in in_text.chain(asked) {
                if command.contains(MARK) {
                    with_names.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
                if !is_safe(&command, name) || command.contains(char::is_control) {
                    faults.push(format!("{} on {system}: {command:?}", rule.text.id));
                }
            }
        }
        faults
    }));
    assert!(with_names.into_inner() > 500, "names are put into commands");
}

#[test]
fn the_words_of_a_command_are_those_of_a_shell() {
    assert_eq!(words("zfs set a='x y'\\''z' \"p q\"r"), ["zfs", "set", "a=x y'z", "p qr"]);
    assert_eq!(words("a $(b);c"), ["a", "$", "(", "b", ")", ";", "c"]);
    assert!(is_safe("zfs list 'qzq;qzq'", "qzq;qzq") && !is_safe("zfs list qzq;qzq", "qzq;qzq"));
}
