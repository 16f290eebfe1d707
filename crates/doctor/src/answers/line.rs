//! The surest of the three answers in one sentence, for somebody who was woken up.
//!
//! What is not shown is not said, and nothing is said surer than it is.

use super::cpu::{Cpu, Part, State};
use super::users::{Kind, User, Users};
use super::zfs::{Among, is_in_user_space};
use super::{Answers, cpus, percent, spent};

/// Samples up to which their number belongs to the sentence.
const FEW_SAMPLES: f64 = 200.0;

pub(super) fn line(answers: &Answers) -> Option<String> {
    let cpu = &answers.cpu;
    match cpu.state {
        State::Waiting => Some(waiting(answers)),
        State::Idle => {
            let busy = cpu.busy_words();
            let calm = busy.unwrap_or_else(|| match cpu.listed_cpus {
                Some(_) => "those listed use next to nothing".to_owned(),
                None => "nothing is shown to use it".to_owned(),
            });
            let most = answers
                .users
                .first()
                .filter(|user| is_most(user, cpu))
                .map(|user| format!(", most of it {}", with(user)))
                .unwrap_or_default();
            // What was long ago says nothing of now.
            if cpu.since_boot {
                let listed = answers.users.first().and_then(|_| unknown(answers));
                return listed
                    .or_else(|| Some(format!("{calm}; how busy it is now is not shown.")));
            }
            // What the load says is the news; who uses the little that is used is not.
            if let (Some(load), Some(busy)) = (&cpu.load, cpu.busy_percent) {
                return Some(format!("Not the CPU: {} is busy, and {load}.", percent(busy)));
            }
            Some(format!("Not the CPU: {calm}{most}."))
        }
        State::Busy | State::Some => Some(busy(answers)),
        State::Unknown => unknown(answers),
    }
}

/// Whether clearly most of what is busy is one user's.
fn is_most(user: &User, cpu: &Cpu) -> bool {
    let half = match (user.cpus, user.machine_percent, cpu.busy_cpus, cpu.busy_percent) {
        (Some(own), _, Some(busy), _) => own >= 0.6 * busy,
        (_, Some(own), _, Some(busy)) => own >= 0.6 * busy,
        (Some(own), _, None, Some(_)) => own >= 0.1,
        _ => user.size() >= 10.0,
    };
    half && user.kind != Kind::NotShown
}

/// The line where nothing tells how busy the machine is.
fn unknown(answers: &Answers) -> Option<String> {
    let Answers { users, zfs, .. } = answers;
    let first = users.first();
    if zfs.among == Among::No
        && zfs.samples_percent.is_none()
        && first.is_none_or(|user| user.size() < 20.0)
    {
        let most = first.map(|user| {
            format!("; most of what is listed is {}: {}", user.described(), user.used())
        });
        return Some(format!("Not {}: {}{}.", zfs.name, zfs.because, most.unwrap_or_default()));
    }
    // Little on a list of which nobody knows what it leaves out is no answer.
    let first = first.filter(|user| {
        users.is_said || user.seconds.is_some() || !user.is_little() || zfs.among != Among::Unknown
    })?;
    let cut = zfs.samples_percent.is_some_and(|(least, most)| most - least >= 50.0);
    let known = match zfs.among {
        // The rest of a table that was cut may be anybody's.
        Among::No if cut => format!("Nothing listed is {}'s: ", zfs.name),
        Among::No => format!("Not {}: ", zfs.name),
        _ => String::new(),
    };
    if users.is_said && first.cpus.is_none() {
        return Some(format!(
            "{known}{} is named; how much CPU it uses was not shown.",
            capital_after(&known, &first.described())
        ));
    }
    if users.of_samples {
        let few = match users.samples {
            Some(count) if count < FEW_SAMPLES => format!("only {count:.0} "),
            _ => String::new(),
        };
        let does = first.does.map(|does| format!(" ({does})")).unwrap_or_default();
        return Some(format!(
            "{known}{} of the {}busy samples go to {}{does}; how busy the machine is was not \
             shown{}.",
            percent(first.samples_percent.unwrap_or(0.0)),
            few,
            first.described(),
            whether(answers)
        ));
    }
    if let Some(used) = first.seconds {
        return Some(format!(
            "{known}{} used most of what is listed since it began, {}; whether it uses the CPU \
             now was not shown{}.",
            capital_after(&known, &first.described()),
            spent(used),
            whether(answers)
        ));
    }
    Some(format!(
        "{known}{} {} most of what is listed, {}{}; whether the machine is busy was not shown{}.",
        capital_after(&known, &first.described()),
        uses(first),
        first.used(),
        over_life(users, first),
        whether(answers)
    ))
}

fn with(user: &User) -> String {
    match user.kind {
        Kind::Interrupts => format!("interrupts with {}", user.used()),
        _ => format!("{} with {}", user.described(), user.used()),
    }
}

/// What is to be added about ZFS.
fn whether(answers: &Answers) -> String {
    let zfs = &answers.zfs;
    match zfs.among {
        Among::No => String::new(),
        Among::Yes => format!("; {} is among them: {}", zfs.name, zfs.because),
        Among::Unknown if answers.users.first().is_some_and(is_in_user_space) && zfs.is_hinted => {
            format!(", in user space; whether {} uses CPU beside it is not shown", zfs.name)
        }
        // Who says nothing of ZFS is not told about it first.
        Among::Unknown if !zfs.is_hinted => String::new(),
        Among::Unknown => format!("; whether {} is behind it is not shown", zfs.name),
    }
}

fn waiting(answers: &Answers) -> String {
    let Answers { cpu, users, zfs } = answers;
    let what = cpu.waits_for.map_or_else(String::new, |wait| format!(" for {}", wait.name()));
    let proof = cpu.proof.clone().unwrap_or_default();
    let busy = match cpu.busy_percent {
        Some(busy) => format!("; {} is busy", percent(busy)),
        None => String::new(),
    };
    let own = users
        .first()
        .filter(|user| user.kind != Kind::NotShown && user.cpus.is_some_and(|count| count >= 0.3))
        .map(|user| format!(", most with {}", user.described()))
        .unwrap_or_default();
    let zfs = match zfs.among {
        Among::Yes => format!("; {}", zfs.because),
        _ => String::new(),
    };
    // One command that waits, or an array that is rebuilt, is not the machine.
    if !cpu.is_known {
        let proof = capital_first(&proof);
        return format!("{proof}; how busy the machine is was not shown{zfs}.");
    }
    format!("Not the CPU: it waits{what} ({proof}){busy}{own}{zfs}.")
}

/// The line of a machine that is busy, all of it or in part.
fn busy(answers: &Answers) -> String {
    let Answers { cpu, users, zfs } = answers;
    let listed = users
        .list
        .iter()
        .any(|user| !matches!(user.kind, Kind::NotShown | Kind::Interrupts | Kind::Stolen));
    // Nor is who uses next to nothing of a busy machine.
    let busy = cpu.busy_percent.is_some_and(|busy| busy >= 30.0);
    let tells =
        |user: &&User| (listed || user.kind != Kind::NotShown) && !(busy && users.is_little());
    let Some(first) = users.first().filter(tells) else {
        return by_nobody(answers);
    };
    // One CPU that is full of interrupts hides among many.
    if let Some((name, Part::Interrupts, value)) = &cpu.full
        && first.kind != Kind::Zfs
        && first.cpus.is_none_or(|count| count < 0.9)
    {
        return format!(
            "CPU {name} is full of interrupts ({} of it), and other CPUs have room{}.",
            percent(*value),
            not_it(answers).unwrap_or_else(|| whether(answers))
        );
    }
    if users.is_said && first.cpus.is_none() {
        let proof = cpu.lockup_words().map(|words| format!(": {words}")).unwrap_or_default();
        return format!(
            "{}{} keeps the CPU busy{proof}{}.",
            capital(&first.described()),
            does(first),
            if zfs.among == Among::Yes { String::new() } else { whether(answers) }
        );
    }
    by(first, answers)
}

/// Busy, and nobody is shown to use it.
fn by_nobody(answers: &Answers) -> String {
    let cpu = &answers.cpu;
    let full = cpu.full.as_ref().map(|(name, part, value)| {
        format!("CPU {name} is full ({}, most with {})", percent(*value), part.name())
    });
    let full = full.or_else(|| cpu.lockup_words().map(|words| capital_first(&words)));
    let busy = cpu.busy_words();
    let said = if cpu.state == State::Busy { busy.or(full) } else { full.or(busy) };
    let said = said.unwrap_or_else(|| "The CPU is busy".to_owned());
    format!("{said}{}. Who uses it is not shown.", not_it(answers).unwrap_or_default())
}

/// Busy, most with one user.
fn by(first: &User, answers: &Answers) -> String {
    let Answers { cpu, users, zfs } = answers;
    let of = match cpu.cpus {
        Some(count) if count >= 2.0 && first.cpus.is_some() && !cpu.cpus_by_figures => {
            format!(" of {count:.0}")
        }
        _ => String::new(),
    };
    let life = over_life(users, first);
    let used = format!("{}{of}{life}", first.used());
    let waits = match cpu.waits_for {
        Some(wait) if cpu.iowait_percent.is_some_and(|value| value >= 20.0) => {
            format!("; beside that it waits for {}", wait.name())
        }
        _ => String::new(),
    };
    let not = match zfs.among {
        Among::No => format!("Not {}: ", zfs.name),
        _ => String::new(),
    };
    let whether = whether(answers);
    let (name, does) = (first.described(), does(first));
    match (zfs.among, first.kind) {
        (Among::Yes, Kind::Zfs) => {
            format!("{} uses the CPU: {}{does} with {used}{waits}.", zfs.name, first.name)
        }
        (Among::No, Kind::Program | Kind::Kernel | Kind::Zfs | Kind::Code) => {
            format!("{not}it is {name}{does}, with {used}{waits}.")
        }
        (_, Kind::Interrupts) => {
            let stolen = beside(users, Kind::Stolen, first)
                .map(|stolen| format!(", and {stolen} are stolen by the hypervisor"));
            format!(
                "{}nterrupts take {used}{}{whether}{waits}.",
                begin(&not, "I", "i"),
                stolen.unwrap_or_default()
            )
        }
        (_, Kind::Stolen) => {
            let interrupts = beside(users, Kind::Interrupts, first)
                .map(|part| format!(", and interrupts take {part}"));
            format!(
                "{not}{used} are stolen: the hypervisor withholds them, for other machines or by a \
                 limit{}{whether}{waits}.",
                interrupts.unwrap_or_default()
            )
        }
        (_, Kind::NotShown) => format!(
            "{not}{}, and the list shows only {} of it{whether}.",
            cpu.busy_words().unwrap_or_else(|| "the CPU is busy".to_owned()),
            match (cpu.busy_cpus, first.cpus) {
                (Some(busy), Some(rest)) => cpus((busy - rest).max(0.0)),
                _ =>
                    percent(cpu.busy_percent.unwrap_or(0.0) - first.machine_percent.unwrap_or(0.0)),
            },
        ),
        // Its threads together may be more than the first of others.
        (Among::Yes, _)
            if zfs.least_cpus.zip(first.cpus).is_some_and(|(own, first)| own >= first) =>
        {
            format!("{} uses the CPU: {}{waits}.", zfs.name, zfs.because)
        }
        (Among::Yes, _) if first.name == zfs.name => format!("{name} uses {used}{waits}."),
        (Among::Yes, _) => {
            format!("{}{does} {} most, {used}{whether}{waits}.", capital(&name), uses(first))
        }
        (Among::Unknown, _) => {
            format!("{}{does} {} {used}{whether}{waits}.", capital(&name), uses(first))
        }
    }
}

/// What a second part uses that is about as large as the first.
fn beside(users: &Users, kind: Kind, first: &User) -> Option<String> {
    let other = users.list.iter().find(|user| user.kind == kind)?;
    (other.size() >= 0.5 * first.size()).then(|| other.used())
}

/// The verb of whoever uses it.
fn uses(user: &User) -> &'static str {
    if user.is_several() { "use" } else { "uses" }
}

/// What a mean over lives is called.
fn over_life(users: &Users, first: &User) -> &'static str {
    match (users.over_life, first.rows > 1) {
        (false, _) => "",
        (true, false) => ", as a mean over its life",
        (true, true) => ", as means over their lives",
    }
}

/// A name as the first word of a sentence, or behind words.
fn capital_after(before: &str, text: &str) -> String {
    if before.is_empty() { capital(text) } else { text.to_owned() }
}

/// A first letter, behind words or at the beginning.
fn begin(before: &str, first: &str, behind: &str) -> String {
    if before.is_empty() { first.to_owned() } else { format!("{before}{behind}") }
}

/// "It is not ZFS", where that is known.
fn not_it(answers: &Answers) -> Option<String> {
    let zfs = &answers.zfs;
    (zfs.among == Among::No).then(|| format!("; it is not {}", zfs.name))
}

fn does(user: &User) -> String {
    user.does.map(|does| format!(" ({does})")).unwrap_or_default()
}

fn capital_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn capital(text: &str) -> String {
    // Names of programs keep their letters; only articles are the sentence's own.
    match text
        .strip_prefix("the ")
        .map(|rest| ("The ", rest))
        .or_else(|| text.strip_prefix("a ").map(|rest| ("A ", rest)))
    {
        Some((article, rest)) => format!("{article}{rest}"),
        None => text.to_owned(),
    }
}
