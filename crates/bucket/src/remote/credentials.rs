//! Credentials for S3, from the sources of the AWS command line: the environment, profiles, single
//! sign-on, web identity, the program of `credential_process`, containers, instances.
//!
//! The library tries all of them. But it runs no program without an executor, and it cannot split a
//! command whose first word is quoted. So the command is split into words here, like a shell would,
//! and run without a shell. See the AWS CLI User Guide, "Sourcing credentials with an external
//! process".
//!
//! The library drops the error of a source, such as an expired single sign-on. It is kept here, for
//! the error of the request without credentials. The instance is left out: most machines are not
//! instances, and each lookup there fails.
//!
//! # Lookups The library looks up credentials again when they expire within two minutes. A program
//! may return the same credentials, or others that expire sooner, and would run for each request.
//! So a result is used for [`PAUSE`] if it is valid for as long.
//!
//! Keys in a file or the environment do not expire, but the file may be replaced at any time. They
//! get an expiry that makes the library look again after [`PAUSE`]. That runs no program.
//!
//! # Locks
//! One for each signer, held during the lookup: all requests wait for one answer.

use super::limits::ANSWER_BYTES_MAX;
use super::variable;
use futures_util::future::try_join;
use opendal::HttpTransporter;
use parking_lot::Mutex as Leaf;
use reqsign_aws_v4::{
    AssumeRoleWithWebIdentityCredentialProvider as WebIdentity, Credential,
    ECSCredentialProvider as Container, EnvCredentialProvider as Environment,
    IMDSv2CredentialProvider as Machine, ProcessCredentialProvider as Program,
    ProfileCredentialProvider as Profile, SSOCredentialProvider as SingleSignOn,
};
use reqsign_core::time::Timestamp;
use reqsign_core::{
    CommandExecute, CommandOutput, Context, Error, OsEnv, ProvideCredential, ProvideCredentialDyn,
    Result, Signer, SigningCredential,
};
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::sync::Mutex;

/// How long a result is used before the next lookup.
pub(super) const PAUSE: Duration = Duration::from_secs(20);
/// The signer looks up credentials again that expire within this time.
const EXPIRES_SOON: Duration = Duration::from_secs(120);
/// How long a program may run, unless its request times out earlier.
const PATIENCE: Duration = Duration::from_secs(60);

/// The sources of the AWS command line, in its order.
#[derive(Debug)]
pub(super) struct Credentials {
    /// The requested profile.
    profile: Option<String>,
    found: Mutex<Option<(Credential, Instant)>>,
    /// Why the last lookup found none.
    why: Arc<Leaf<Option<String>>>,
}

/// A source of credentials.
type Source = Box<dyn ProvideCredentialDyn<Credential = Credential>>;

impl Credentials {
    /// With the given profile, or the one that the environment names.
    pub(super) fn new(profile: Option<&str>) -> Self {
        let (profile, found) = (profile.map(str::to_owned), Mutex::new(None));
        Self { profile, found, why: Arc::default() }
    }

    /// The same sources, without cached credentials.
    pub(super) fn fresh(&self) -> Self {
        let (profile, why) = (self.profile.clone(), Arc::clone(&self.why));
        Self { profile, found: Mutex::new(None), why }
    }

    /// The errors of the sources, if there were no credentials.
    pub(super) fn why(&self) -> Option<String> {
        self.why.lock().clone()
    }

    /// The profile's `credential_process`, from the config file or the credentials file.
    async fn command(&self, context: &Context) -> Option<String> {
        let profile = self.profile.clone().or_else(|| context.env_var("AWS_PROFILE"));
        let profile = profile.unwrap_or_else(|| "default".to_owned());
        let settings = match profile.as_str() {
            "default" => profile.clone(),
            _ => format!("profile {profile}"),
        };
        let files = [
            ("AWS_CONFIG_FILE", "~/.aws/config", settings),
            ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", profile),
        ];
        for (variable, usual, section) in files {
            let path = context.env_var(variable).unwrap_or_else(|| usual.to_owned());
            let Some(path) = context.expand_home_dir(&path) else { continue };
            let Ok(text) = context.file_read(&path).await else { continue };
            let text = String::from_utf8_lossy(&text);
            let command = value_in(&text, &section, "credential_process");
            if command.is_some() {
                return command;
            }
        }
        None
    }

    /// The sources in their order, each with the name for its errors.
    fn sources(&self, command: Option<String>) -> Vec<(Option<&'static str>, Source)> {
        let (mut profile, mut sign_on) = (Profile::default(), SingleSignOn::default());
        let mut sources: Vec<(_, Source)> = Vec::new();
        match &self.profile {
            // A profile given by name takes precedence over the environment.
            Some(name) => {
                (profile, sign_on) = (profile.with_profile(name), sign_on.with_profile(name))
            }
            None => sources.push((Some("the environment"), Box::new(Environment::new()))),
        }
        sources.push((Some("the profile"), Box::new(profile)));
        sources.push((Some("single sign-on"), Box::new(sign_on)));
        sources.push((Some("web identity"), Box::new(WebIdentity::default())));
        if let Some(command) = command {
            let program = Program::new().with_command(command);
            sources.push((Some("the program"), Box::new(program)));
        }
        sources.push((Some("the container"), Box::new(Container::default())));
        sources.push((None, Box::new(Machine::default())));
        sources
    }

    async fn look(&self, context: &Context) -> Result<Option<Credential>> {
        let context = context.clone().with_command_execute(ProcessRunner);
        let command = self.command(&context).await;
        let is_run = command.is_some();
        let mut complaints = Vec::new();
        for (name, source) in self.sources(command) {
            match (source.provide_credential_dyn(&context).await, name) {
                (Ok(Some(found)), _) => {
                    *self.why.lock() = None;
                    return Ok(Some(if is_run { found } else { with_expiry(found) }));
                }
                (Err(error), Some(name)) => complaints.push(format!("{name}: {error}")),
                (Err(error), None) => log::info!("the instance has no credentials: {error}"),
                (Ok(None), _) => {}
            }
        }
        *self.why.lock() = Some(complaints.join("; ")).filter(|why| !why.is_empty());
        Ok(None)
    }
}

/// The same credentials, with an expiry if they have none.
fn with_expiry(found: Credential) -> Credential {
    let soon = || Timestamp::now() + EXPIRES_SOON + PAUSE;
    Credential { expires_in: found.expires_in.or_else(|| Some(soon())), ..found }
}

/// Signs the head of a request again. Missing credentials are looked up, over `http` if necessary.
pub(super) async fn sign_again(
    signer: &Signer<Credential>,
    http: &HttpTransporter,
    parts: &mut http::request::Parts,
) -> Result<()> {
    for name in ["authorization", "x-amz-date", "x-amz-security-token"] {
        parts.headers.remove(name);
    }
    let context = Context::new()
        .with_file_read(reqsign_file_read_tokio::TokioFileRead)
        .with_http_send(http.clone())
        .with_env(OsEnv);
    signer.clone().with_context(context).sign(parts, None).await?;
    parts.headers.remove(http::header::HOST);
    Ok(())
}

/// The file of certificate authorities that the profile names.
pub(super) fn ca_bundle(profile: Option<&str>) -> Option<String> {
    let home = || Some(std::env::home_dir()?.join(".aws/config"));
    let path = variable(&"AWS_CONFIG_FILE").map(PathBuf::from).or_else(home)?;
    let text = std::fs::read(path).ok()?;
    let profile = profile.map(str::to_owned).or_else(|| variable(&"AWS_PROFILE"));
    let section = match profile.as_deref().unwrap_or("default") {
        "default" => "default".to_owned(),
        profile => format!("profile {profile}"),
    };
    value_in(&String::from_utf8_lossy(&text), &section, "ca_bundle")
}

/// The value of a setting in one section of such a file, unparsed.
fn value_in(text: &str, section: &str, wanted: &str) -> Option<String> {
    let mut is_here = false;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            is_here = name.split_whitespace().eq(section.split_whitespace());
        } else if is_here
            && let Some((name, value)) = line.split_once('=')
            && name.trim() == wanted
        {
            return Some(value.trim().to_owned()).filter(|value| !value.is_empty());
        }
    }
    None
}

impl ProvideCredential for Credentials {
    type Credential = Credential;

    async fn provide_credential(&self, context: &Context) -> Result<Option<Credential>> {
        let mut found = self.found.lock().await;
        if let Some((credential, since)) = &*found
            && since.elapsed() < PAUSE
            && credential.is_valid_at(Timestamp::now() + PAUSE)
        {
            return Ok(Some(credential.clone()));
        }
        let answer = self.look(context).await?;
        *found = answer.clone().map(|credential| (credential, Instant::now()));
        Ok(answer)
    }
}

/// Runs a program and reads its output, up to a bound. A longer output ends it.
async fn run(words: &[String]) -> std::io::Result<Output> {
    let mut running = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (out, complaint) = (running.stdout.take(), running.stderr.take());
    let out = async {
        let mut said = Vec::new();
        let pipe = out.ok_or(std::io::ErrorKind::BrokenPipe)?;
        pipe.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut said).await?;
        Ok::<_, std::io::Error>(said)
    };
    let complaint = async {
        let mut said = Vec::new();
        let mut pipe = complaint.ok_or(std::io::ErrorKind::BrokenPipe)?;
        (&mut pipe).take(ANSWER_BYTES_MAX).read_to_end(&mut said).await?;
        // A program with long messages may still print credentials.
        tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
        Ok(said)
    };
    let (stdout, stderr) = try_join(out, complaint).await?;
    let status = running.wait().await?;
    Ok(Output { status, stdout, stderr })
}

/// Runs the program of `credential_process`.
#[derive(Debug)]
struct ProcessRunner;

impl CommandExecute for ProcessRunner {
    async fn command_execute(&self, program: &str, arguments: &[&str]) -> Result<CommandOutput> {
        // The library has split the command at its spaces, quoted or not.
        let command = [&[program], arguments].concat().join(" ");
        let wrong = |why: String| Error::unexpected(format!("credential_process {command}: {why}"));
        let words = shlex::split(&command).filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| wrong("its quotes do not match".to_owned()))?;
        let output = match tokio::time::timeout(PATIENCE, run(&words)).await {
            Ok(output) => output.map_err(|error| wrong(error.to_string()))?,
            Err(_) => return Err(wrong(format!("no answer in {} s", PATIENCE.as_secs()))),
        };
        if output.stdout.len() as u64 > ANSWER_BYTES_MAX {
            return Err(wrong(format!("its output exceeds {} KiB", ANSWER_BYTES_MAX >> 10)));
        }
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            return Err(wrong(format!("{}: {said}", output.status)));
        }
        Ok(CommandOutput { status: 0, stdout: output.stdout, stderr: output.stderr })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn run<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(work)
    }

    fn program(directory: &Path, text: &str) -> String {
        let path = directory.join("a program");
        // Another process writes it: a child of this one inherits a file that any thread has open
        // for writing, and keeps it until exec. Until then the file cannot be run.
        let write = r#"printf '#!/bin/sh\n%s\n' "$1" >"$2"; chmod 755 "$2""#;
        let mut shell = std::process::Command::new("sh");
        let status = shell.args(["-c", write, "sh", text]).arg(&path).status();
        assert!(status.unwrap().success());
        path.to_str().unwrap().to_owned()
    }

    /// Calls like the library.
    fn execute(command: &str) -> Result<CommandOutput> {
        let words: Vec<&str> = command.split_whitespace().collect();
        run(ProcessRunner.command_execute(words[0], &words[1..]))
    }

    #[test]
    fn a_command_is_split_like_in_a_shell_but_run_without_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = program(directory.path(), r#"printf '%s|' "$@""#);
        let output = execute(&format!("'{path}' \"a b\" $(id) ;")).unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "a b|$(id)|;|");
    }

    #[test]
    fn the_command_of_a_profile_is_read_verbatim() {
        let text = "; a comment\n[default]\nregion = a\n credential_process = \"/a b/c\" --for \"x y\"\n\
                    [profile  work]\ncredential_process=/usr/bin/give\n[profile none]\n";
        let of = |section| value_in(text, section, "credential_process");
        assert_eq!(of("default").as_deref(), Some("\"/a b/c\" --for \"x y\""));
        assert_eq!(of("profile work").as_deref(), Some("/usr/bin/give"));
        assert_eq!((of("profile none"), of("work")), (None, None));
    }

    #[test]
    fn keys_without_an_expiry_are_looked_up_again() {
        let key = Credential {
            access_key_id: "key".to_owned(),
            secret_access_key: "secret".to_owned(),
            ..Credential::default()
        };
        let now = Timestamp::now();
        let given = with_expiry(key.clone());
        assert!(given.is_valid(), "a signer accepts it");
        assert!(!given.is_valid_at(now + EXPIRES_SOON + PAUSE * 2), "but not for long");
        let ends = Some(now + Duration::from_secs(3600));
        let kept = with_expiry(Credential { expires_in: ends, ..key });
        assert_eq!(kept.expires_in, ends);
    }

    #[test]
    fn the_output_of_a_program_is_read_up_to_a_bound() {
        let directory = tempfile::tempdir().unwrap();
        let endless = program(directory.path(), "yes; exit 0");
        let error = execute(&format!("'{endless}'")).unwrap_err().to_string();
        assert!(error.contains("its output exceeds 64 KiB"), "{error}");
        let chatty = "head -c 1000000 /dev/zero >&2; echo key";
        let chatty = program(directory.path(), chatty);
        assert_eq!(execute(&format!("'{chatty}'")).unwrap().stdout, b"key\n");
    }

    #[test]
    fn errors_of_a_program_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        let path = program(directory.path(), "echo 'log in first' >&2; exit 3");
        let error = execute(&format!("'{path}'")).unwrap_err().to_string();
        assert!(error.contains("log in first") && error.contains("3"), "{error}");
        assert!(execute("/nonexistent/program").is_err());
        assert!(execute("'a quote").unwrap_err().to_string().contains("quotes"));
    }
}
