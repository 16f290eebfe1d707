//! One spelling for the names of functions, modules and threads.
//!
//! A function appears as `osq_lock`, `osq_lock+0x3c/0x1a0`, `[k] osq_lock` or
//! `osq_lock.constprop.0`. A module appears as `[kernel]`, `[kernel.kallsyms]` or `vmlinux`, and a
//! thread as `[dbuf_evict]` or `dbuf_evict`. Rules must see one spelling of each.

use crate::evidence::Frame;

/// Suffixes that the compiler adds to clones of a function; the text after them is removed too.
const CLONE_MARKS: [&str; 7] =
    [".isra.", ".constprop.", ".part.", ".cold", ".llvm.", ".lto_priv.", ".clone."];

/// A frame of a symbol and an object, in any spelling.
pub(crate) fn frame(symbol: &str, object: Option<&str>) -> Frame {
    let mut text = symbol.trim();
    let mut kernel = None;
    for (mark, is_kernel) in [("[k]", true), ("[.]", false), ("[g]", true), ("[u]", false)] {
        if let Some(rest) = text.strip_prefix(mark) {
            kernel = Some(is_kernel);
            text = rest.trim_start();
        }
    }
    // Call graphs and kernel stacks print `[zfs]` after the symbol.
    let mut object = object;
    if let Some((name, module)) = text.split_once(" [")
        && let Some(module) = module.trim_end().strip_suffix(']')
    {
        text = name.trim_end();
        object = Some(module);
    }
    let module = object.and_then(module);
    let kernel = kernel.or_else(|| {
        object.map(str::trim).filter(|_| module.is_some()).map(|object| {
            object.starts_with('[') && !matches!(object, "[vdso]" | "[vsyscall]" | "[heap]")
                || module.as_deref() == Some("kernel")
        })
    });
    Frame { symbol: symbol_name(text), module, kernel }
}

/// The bare name of a function, or `None` for addresses and `[unknown]`.
pub(crate) fn symbol_name(text: &str) -> Option<String> {
    let mut name = text.trim().trim_start_matches("? ").trim_end_matches("()");
    // FreeBSD and illumos print module`function.
    if let Some((module, function)) = name.split_once('`')
        && !module.contains([' ', '('])
    {
        name = function;
    }
    if let Some(at) = name.rfind("+0x").or_else(|| name.rfind(" + ")) {
        name = &name[..at];
    }
    for suffix in ["_[k]", "_[j]", "_[i]", " [k]"] {
        name = name.strip_suffix(suffix).unwrap_or(name);
    }
    for mark in CLONE_MARKS {
        if let Some(at) = name.find(mark).filter(|&at| at > 0) {
            name = &name[..at];
        }
    }
    let name = name.trim();
    if name.is_empty() || name.len() > 1024 || is_address(name) || name.contains("[unknown]") {
        return None;
    }
    Some(name.to_owned())
}

/// Hexadecimal digits that cannot be a name: `0xffffffffc0b05bca`, `00000000002990cf`.
pub(crate) fn is_address(text: &str) -> bool {
    match text.strip_prefix("0x") {
        Some(digits) => !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => {
            text.len() >= 5
                && text.bytes().all(|byte| byte.is_ascii_hexdigit())
                && text.bytes().any(|byte| byte.is_ascii_digit())
        }
    }
}

/// The bare name of a module or object.
pub(crate) fn module(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches('(').trim_end_matches(')');
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let bare = bare.trim_end_matches("_[k]");
    if bare.is_empty() || bare == "unknown" || bare == "." || bare == "k" {
        return None;
    }
    let file = bare.rsplit('/').next().unwrap_or(bare);
    if file.starts_with("kernel") && (file == "kernel" || file.starts_with("kernel."))
        || file.starts_with("vmlinux")
        || file.starts_with("guest.kernel")
        || matches!(file, "unix" | "genunix" | "kernel.kallsyms")
    {
        return Some("kernel".to_owned());
    }
    let file = file.split(".ko").next().unwrap_or(file);
    (!file.is_empty()).then(|| file.to_owned())
}

/// The bare name of a thread, and whether its spelling marks it as one of the kernel.
///
/// `[z_wr_iss]` and `kernel{arc_prune}` are kernel threads; `|__arc_evict` is a thread that pidstat
/// draws below its process.
pub(crate) fn thread(text: &str) -> (String, Option<bool>) {
    let text = text.trim().trim_start_matches("|__").trim_start_matches("`- ").trim();
    if let Some(inner) = text.strip_prefix('[') {
        let inner = inner.split(']').next().unwrap_or(inner);
        return (inner.to_owned(), Some(true));
    }
    if let Some((process, rest)) = text.split_once('{') {
        let inner = rest.split('}').next().unwrap_or(rest);
        let is_kernel = matches!(
            process,
            "kernel" | "idle" | "zfskern" | "geom" | "intr" | "pagedaemon" | "bufdaemon"
        );
        let name = if inner.is_empty() { process } else { inner };
        return (name.to_owned(), is_kernel.then_some(true));
    }
    (text.to_owned(), None)
}

/// The name of the program in a command line; names of threads do not change.
pub(crate) fn short_name(text: &str) -> String {
    let first = text.split_whitespace().next().unwrap_or(text);
    if !text.contains(' ') && !text.starts_with(['/', '.']) {
        return text.to_owned();
    }
    first.rsplit('/').next().unwrap_or(first).trim_end_matches(':').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_has_one_spelling() {
        for text in [
            "osq_lock",
            "[k] osq_lock",
            "osq_lock+0x3c/0x1a0",
            "? osq_lock+0x1",
            "osq_lock.isra.4.part.5",
            "osq_lock()",
        ] {
            assert_eq!(frame(text, None).symbol.as_deref(), Some("osq_lock"), "{text}");
        }
        assert_eq!(frame("zfs`arc_evict+0x12", None).symbol.as_deref(), Some("arc_evict"));
        assert_eq!(symbol_name("0x00000000002990cf"), None);
        assert_eq!(symbol_name("00000000002990cf"), None);
        assert_eq!(symbol_name("[unknown]"), None);
        assert_eq!(symbol_name("add_reference").as_deref(), Some("add_reference"));
    }

    #[test]
    fn a_module_has_one_spelling() {
        for text in [
            "[kernel]",
            "[kernel.kallsyms]",
            "([kernel.kallsyms])",
            "vmlinux",
            "/usr/lib/debug/vmlinux-5.4",
        ] {
            assert_eq!(module(text).as_deref(), Some("kernel"), "{text}");
        }
        assert_eq!(module("[zfs]").as_deref(), Some("zfs"));
        assert_eq!(module("/lib/modules/5/extra/zfs.ko.zst").as_deref(), Some("zfs"));
        assert_eq!(module("/usr/lib/libc.so.6").as_deref(), Some("libc.so.6"));
        assert_eq!(module("[unknown]"), None);
        assert_eq!(frame("call_it+0x18/0x30 [zfs]", None).module.as_deref(), Some("zfs"));
        assert_eq!(frame("[.] read", Some("libc.so.6")).kernel, Some(false));
        assert_eq!(frame("read", Some("[zfs]")).kernel, Some(true));
    }

    #[test]
    fn a_thread_has_one_spelling() {
        assert_eq!(thread("[dbuf_evict]"), ("dbuf_evict".into(), Some(true)));
        assert_eq!(thread("kernel{arc_prune}"), ("arc_prune".into(), Some(true)));
        assert_eq!(thread("mysqld{mysqld}"), ("mysqld".into(), None));
        assert_eq!(thread("|__arc_evict"), ("arc_evict".into(), None));
        assert_eq!(thread("z_fr_iss_3"), ("z_fr_iss_3".into(), None));
    }
}
