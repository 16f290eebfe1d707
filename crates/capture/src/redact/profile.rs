//! Redacts a profile. Threads of programs get numbers. Functions keep their names only in the
//! kernel, in its modules and in common libraries.

use std::collections::HashMap;

use ogive_profile::{Frame, Mode, Profile, Sample, StackId};

use super::pseudonyms::Pseudonyms;

/// Prefixes of the file names of libraries whose functions are evidence and not secret.
const PUBLIC: [&str; 17] = [
    "libc.",
    "libc-",
    "libm.",
    "libpthread",
    "ld-linux",
    "ld-2",
    "libzfs",
    "libzpool",
    "libnvpair",
    "libuutil",
    "libcrypto",
    "libssl",
    "libz.",
    "liblz4",
    "libzstd",
    "liblzma",
    "vdso",
];

/// Programs whose functions are evidence and not secret, by exact name.
const PUBLIC_PROGRAMS: [&str; 4] = ["zdb", "zpool", "zfs", "ogive"];

/// The same samples with pseudonyms.
pub(super) fn redacted(profile: &Profile, names: &mut Pseudonyms) -> Profile {
    let mut meta = profile.meta.clone();
    meta.host = None;
    meta.command = None;
    meta.notes.clear();
    meta.unresolved.clear();
    (meta.samples, meta.without_stack) = (0, 0);
    let mut out = Profile::new(meta);
    let mut stacks: HashMap<StackId, StackId> = HashMap::new();
    for sample in profile.samples() {
        let thread = profile.thread(sample.thread);
        let name = names.program(thread.name);
        let thread = out.add_thread(thread.pid, thread.tid, &name);
        let stack = match stacks.get(&sample.stack) {
            Some(known) => *known,
            None => {
                let made = stack(profile, sample.stack, names, &mut out);
                stacks.insert(sample.stack, made);
                made
            }
        };
        out.push(Sample { thread, stack, ..*sample });
    }
    out
}

fn stack(profile: &Profile, stack: StackId, names: &mut Pseudonyms, out: &mut Profile) -> StackId {
    let mut frames: Vec<Frame<'_>> = profile.stack(stack).map(|id| profile.frame(id)).collect();
    frames.reverse();
    let mut made = StackId::EMPTY;
    for frame in frames {
        let short = frame.module_name();
        let is_public = frame.mode == Mode::Kernel
            || short.starts_with('[')
            || PUBLIC_PROGRAMS.contains(&short)
            || PUBLIC.iter().any(|public| short.starts_with(public));
        let (symbol, module) = if is_public {
            (out.intern(frame.symbol), out.intern(short))
        } else {
            let module = names.program(short);
            (out.intern(""), out.intern(&module))
        };
        let id = out.add_frame(symbol, module, frame.mode, 0);
        made = out.push_frame(made, id);
    }
    made
}
