//! Opens the page in a browser, as `xdg-open` or `$BROWSER` name one, without a shell.
//!
//! Every user on a host can read the arguments of a process, so the link with its token is not
//! among them. The browser opens a file that only its owner can read, and that leads to the link.
//! The file is removed a minute after the command has ended, because many browsers return at once
//! and read later.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::NamedTempFile;

/// The command if `$BROWSER` names none.
const USUAL: &str = "xdg-open";
/// Where the address goes in a command of `$BROWSER`; without it, behind the last argument.
const PLACE: &[u8] = b"%s";
/// The file that leads to the page is kept so long after the command has ended.
const KEPT: Duration = Duration::from_secs(60);

/// Opens a link; a separate thread waits for the command and removes the file.
///
/// # Errors
///
/// The reason why no browser could be started, as text.
pub(super) fn open(browser: Option<&OsStr>, link: &str) -> Result<(), String> {
    let (mut child, file) = start(browser, link)?;
    let waiter = thread::Builder::new().name("watch_open".into()).spawn(move || {
        let _ = child.wait();
        thread::sleep(KEPT);
        drop(file);
    });
    waiter.map(drop).map_err(|error| format!("cannot start a thread to open a browser: {error}"))
}

/// Starts the first command that can be started.
fn start(browser: Option<&OsStr>, link: &str) -> Result<(Child, NamedTempFile), String> {
    let file = page(link).map_err(|error| format!("cannot write a file for a browser: {error}"))?;
    let mut reasons = Vec::new();
    for command in commands(browser, file.path().as_os_str()) {
        let Some((program, arguments)) = command.split_first() else { continue };
        let started = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match started {
            Ok(child) => return Ok((child, file)),
            Err(error) => reasons.push(format!("{}: {error}", program.display())),
        }
    }
    Err(format!("no browser could be started ({})", reasons.join("; ")))
}

/// A page that leads to a link. No character of our links has a meaning in HTML.
fn page(link: &str) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("ogive-watch-").suffix(".html").tempfile()?;
    writeln!(
        file,
        "<!doctype html><meta charset=utf-8><title>ogive watch</title>\
         <meta http-equiv=refresh content=\"0;url={link}\"><a href=\"{link}\">ogive watch</a>"
    )?;
    file.flush()?;
    Ok(file)
}

/// The commands to try, in this order: with arguments, separated by colons.
fn commands(browser: Option<&OsStr>, file: &OsStr) -> Vec<Vec<OsString>> {
    let named = browser.filter(|text| !text.is_empty()).unwrap_or(OsStr::new(USUAL));
    let words = |command: &[u8]| {
        let words = command.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let mut words: Vec<OsString> =
            words.map(|word| OsString::from_vec(word.to_vec())).collect();
        let mut placed = false;
        for word in words.iter_mut().skip(1).filter(|word| word.as_bytes() == PLACE) {
            file.clone_into(word);
            placed = true;
        }
        if !placed && !words.is_empty() {
            words.push(file.to_owned());
        }
        words
    };
    let commands = named.as_bytes().split(|byte| *byte == b':').map(words);
    commands.filter(|words| !words.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    const LINK: &str = "http://127.0.0.1:7380/#token=0123456789abcdef";

    /// `cp` stands for a browser: it reads the file that it is shown.
    #[test]
    fn the_first_browser_there_is_gets_a_page_that_leads_to_the_link() {
        let place = tempfile::tempdir().unwrap();
        let seen = place.path().join("seen");
        let browser = format!("/nonexistent/browser -x: :cp %s {}", seen.display());
        let (mut child, file) = start(Some(OsStr::new(&browser)), LINK).unwrap();
        assert!(child.wait().unwrap().success());
        let page = std::fs::read_to_string(&seen).unwrap();
        assert!(page.contains(&format!("content=\"0;url={LINK}\"")), "{page}");
        let mode = file.as_file().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "others may read the token");
        let path = file.path().to_owned();
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn no_shell_reads_the_command_and_no_argument_has_the_token() {
        let file = OsStr::new("/tmp/a.html");
        let commands_of = |browser: &str| commands(Some(OsStr::new(browser)), file);
        assert_eq!(
            commands_of("firefox --new-window %s"),
            [["firefox", "--new-window", "/tmp/a.html"]]
        );
        assert_eq!(commands_of("a; rm $HOME"), [["a;", "rm", "$HOME", "/tmp/a.html"]]);
        assert_eq!(commands_of("a:b"), [["a", "/tmp/a.html"], ["b", "/tmp/a.html"]]);
        assert_eq!(commands_of(""), [["xdg-open", "/tmp/a.html"]]);
        assert_eq!(commands(None, file), [["xdg-open", "/tmp/a.html"]]);
        assert!(commands_of(" : ").is_empty());
    }

    #[test]
    fn without_a_browser_it_names_the_commands_it_tried() {
        let error = start(Some(OsStr::new("/nonexistent/a:/nonexistent/b")), LINK).unwrap_err();
        assert!(error.contains("/nonexistent/a: No such file"), "{error}");
        assert!(error.contains("/nonexistent/b"), "{error}");
        assert!(!error.contains("0123456789abcdef"), "{error}");
    }
}
